//! The choice of the machine for a node allocation, and the reason why there is none.
//!
//! Free machines are indexed by class and pool, and by trait in these: the choice looks at the smallest
//! set that the request allows, from a place that the seed chooses, and ends at the first machine that
//! fits.

use std::collections::BTreeSet;

use proto_types::MachineId;
use uuid::Uuid;

use crate::allocation::entity::NodeAllocation;
use crate::machine::entity::Machine;
use crate::machine::read::obstacle;
use crate::tables::Tables;

/// The machine for a node allocation.
///
/// # Errors
/// The reason why there is none, for its owner: it counts only machines of its pool.
pub(crate) fn chosen_machine<'a>(
    tables: &'a Tables,
    wanted: &NodeAllocation,
    seed: u64,
) -> Result<&'a Machine, String> {
    let class = wanted.resource_class.canonical();
    let key = (class, wanted.pool());
    let nothing = BTreeSet::new();
    let free = tables.index().free_machines.get(&key).unwrap_or(&nothing);
    let fits = |id: &&MachineId| {
        let machine = tables.get::<Machine>(id);
        machine.is_some_and(|machine| wanted.traits.is_subset(&machine.capability.traits))
    };
    let can_be_used = |id: &MachineId| {
        let machine = tables.get::<Machine>(id)?;
        obstacle(tables, machine).is_none().then_some(&**machine)
    };
    let found = if wanted.candidates.is_empty() {
        let smallest = smallest(tables, wanted, free);
        let from = smallest.unwrap_or(&nothing);
        from_seed(from, seed).filter(fits).find_map(can_be_used)
    } else {
        let named = from_seed(&wanted.candidates, seed).filter(|id| free.contains(*id));
        named.filter(fits).find_map(can_be_used)
    };
    found.ok_or_else(|| reason(tables, wanted, free))
}

/// The ids of a set, beginning at one that the seed chooses: otherwise a broken machine would be handed
/// out first every time.
fn from_seed(ids: &BTreeSet<MachineId>, seed: u64) -> impl Iterator<Item = &MachineId> {
    let start = MachineId::new(Uuid::from_u64_pair(seed, seed));
    ids.range(start..).chain(ids.range(..start))
}

/// The smallest set of free machines of a class that has all machines with the traits. `None` means that
/// no free machine has one of them.
fn smallest<'a>(
    tables: &'a Tables,
    wanted: &NodeAllocation,
    free: &'a BTreeSet<MachineId>,
) -> Option<&'a BTreeSet<MachineId>> {
    let (class, pool) = (wanted.resource_class.canonical(), wanted.pool());
    let mut smallest = free;
    for name in &wanted.traits {
        let key = (class.clone(), pool, name.clone());
        let with_trait = tables.index().free_traits.get(&key)?;
        if with_trait.len() < smallest.len() {
            smallest = with_trait;
        }
    }
    Some(smallest)
}

/// The reason why no machine was found, with the numbers of machines that each condition leaves.
fn reason(tables: &Tables, wanted: &NodeAllocation, free: &BTreeSet<MachineId>) -> String {
    let key = (wanted.resource_class.canonical(), wanted.pool());
    let class = &key.0;
    let all = tables.index().class_machines.get(&key).copied();
    let all = all.unwrap_or_default();
    let of_whom = match wanted.owner {
        Some(_) => "owned by or leased to the project",
        None => "of the site, which have no owner and are in no pool",
    };
    let total = format!("{all} machines of class {class} are {of_whom}");
    if free.is_empty() {
        return format!("no machine is free: {total}, and 0 of them are free");
    }
    let free_count = free.len();
    let mut named: Vec<&MachineId> = free.iter().collect();
    if !wanted.candidates.is_empty() {
        named.retain(|id| wanted.candidates.contains(*id));
        if named.is_empty() {
            return format!(
                "no candidate is free: {total}, {free_count} of them are free, and 0 of these are \
                 among the {} candidates",
                wanted.candidates.len()
            );
        }
    }
    named.retain(|id| {
        let machine = tables.get::<Machine>(id);
        machine.is_some_and(|machine| wanted.traits.is_subset(&machine.capability.traits))
    });
    if named.is_empty() {
        return format!(
            "no free machine has the traits: {total}, {free_count} of them are free, and 0 of these \
             have all {} traits",
            wanted.traits.len()
        );
    }
    format!(
        "no machine can be used now: {total}, {free_count} of them are free, {} of these fit, and each \
         of these gives no sign of life, lacks a cable or has no size",
        named.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_says_where_the_search_begins() {
        let id = |number: u64| MachineId::new(Uuid::from_u64_pair(number, 0));
        let ids: BTreeSet<MachineId> = [1, 2, 3].map(|number| id(number << 60)).into();
        for (seed, first) in [(0, 1), (2, 1), (3 << 59, 2), (5 << 59, 3), (u64::MAX, 1)] {
            let order: Vec<&MachineId> = from_seed(&ids, seed).collect();
            assert_eq!(order.len(), ids.len(), "each comes once");
            // A seed beyond the last id begins with the first one.
            assert_eq!(*order[0], id(first << 60), "{seed:x}");
        }
    }
}
