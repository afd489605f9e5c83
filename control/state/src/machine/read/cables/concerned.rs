//! Machines whose cables a change may decide.
//!
//! The cost of a change must not grow with the number of machines that claim one port or one
//! network card: whoever can register machines can make them all claim the same. Two rivals whose
//! claims count already refuse each other and everybody else, whatever a further one does.

use std::collections::BTreeSet;

use proto_types::{MachineId, PartitionId, SwitchId};

use crate::machine::entity::Machine;
use crate::machine::read::cables::{heard_on, is_believed, named};
use crate::switch::entity::{Neighbour, Switch, addresses};
use crate::tables::Tables;

/// Machines other than this one whose claims its change may decide, on the ports and cards that it
/// has or claims. Callers collect them before and after the change, because what the machine no
/// longer claims concerns others as well.
pub(crate) fn concerned(tables: &Tables, machine: &Machine) -> BTreeSet<MachineId> {
    let index = tables.index();
    let mut found = BTreeSet::new();
    for link in &machine.links {
        found.extend(at_port(tables, machine, &link.switch, &link.port));
    }
    for nic in &machine.hardware.nics {
        for neighbour in &nic.neighbours {
            if let Ok(switch) = neighbour.system_name.parse() {
                found.extend(at_port(tables, machine, &switch, &neighbour.port_id));
            }
        }
        let holders = index.card_machines.get(&nic.mac).into_iter().flatten();
        found.extend(swayed(
            tables,
            Some(machine.id),
            machine.partition.as_ref(),
            holders,
        ));
    }
    found.remove(&machine.id);
    found
}

/// Machines whose claims on a port another machine may decide.
fn at_port(
    tables: &Tables,
    machine: &Machine,
    switch: &SwitchId,
    port: &str,
) -> BTreeSet<MachineId> {
    // Nobody's claim on an unknown switch stands; its registration judges them all.
    let Some(switch) = tables.get::<Switch>(switch) else {
        return BTreeSet::new();
    };
    if switch.hears {
        return concerned_by_port(tables, switch, port, heard_on(switch, port));
    }
    let at = (switch.id.clone(), port.to_owned());
    let claimants = tables.index().claimants.get(&at).into_iter().flatten();
    let partition = Some(&switch.partition);
    let mut found = swayed(tables, Some(machine.id), partition, claimants);
    found.extend(tables.index().port_machine.get(&at));
    found
}

/// Machines that claim a port of a switch, or that the switch hears.
pub(crate) fn concerned_by_switch(tables: &Tables, switch: &Switch) -> BTreeSet<MachineId> {
    // The empty name comes before every port of the switch.
    let from: (SwitchId, String) = (switch.id.clone(), String::new());
    let claimed = tables.index().claimants.range(from..);
    let claimed = claimed.take_while(|((at, _), _)| *at == switch.id);
    let mut found: BTreeSet<_> = claimed
        .flat_map(|(_, machines)| machines)
        .copied()
        .collect();
    for (name, port) in &switch.ports {
        if let Some(seen) = &port.observed {
            found.extend(concerned_by_port(tables, switch, name, &seen.neighbours));
        }
    }
    found
}

/// Machines that a change of the neighbours of a port concerns: the one that has the port, and
/// those among the neighbours. A claim of a machine that the switch does not hear stays refused.
pub(crate) fn concerned_by_port(
    tables: &Tables,
    switch: &Switch,
    port: &str,
    heard: &[Neighbour],
) -> BTreeSet<MachineId> {
    let index = tables.index();
    let at = (switch.id.clone(), port.to_owned());
    let mut found: BTreeSet<_> = index.port_machine.get(&at).copied().into_iter().collect();
    for neighbour in heard {
        // A neighbour that names a machine is no other's, also at the same MAC address.
        if let Some(machine) = named(neighbour) {
            found.insert(machine);
            continue;
        }
        for mac in addresses(neighbour) {
            let holders = index.card_machines.get(&mac).into_iter().flatten();
            found.extend(swayed(tables, None, Some(&switch.partition), holders));
        }
    }
    found
}

/// Those out of `ids` in a partition whose claims are not refused already because of a rival among
/// `ids` other than `machine`.
fn swayed<'a>(
    tables: &Tables,
    machine: Option<MachineId>,
    partition: Option<&PartitionId>,
    ids: impl Iterator<Item = &'a MachineId> + Clone,
) -> BTreeSet<MachineId> {
    let others = ids.filter(|id| Some(**id) != machine);
    let here = others.filter_map(|id| {
        let other = tables.get::<Machine>(id);
        other.filter(|other| other.partition.as_ref() == partition)
    });
    let mut believed = here.clone().filter(|other| is_believed(other));
    match (believed.next(), believed.next()) {
        (Some(_), Some(_)) => BTreeSet::new(),
        (Some(only), None) => BTreeSet::from([only.id]),
        // Claims of locked machines have no rival among each other.
        (None, _) => here.map(|other| other.id).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto_types::{MacAddr, Timestamp};
    use uuid::Uuid;

    use super::*;
    use crate::machine::entity::Nic;

    /// Machines that claim one port, with one card each.
    const CROWD: u8 = 100;

    fn rival(number: u8, mac: u8) -> Machine {
        let id = MachineId::new(Uuid::from_u128(number.into()));
        let mut machine = Machine::seen(id, "hall".parse().ok(), Timestamp::ZERO);
        machine.hardware.nics = vec![Nic {
            name: "eth0".to_owned(),
            identifier: String::new(),
            vendor: String::new(),
            model: String::new(),
            speed: 0,
            boot: true,
            mac: MacAddr([2, 0, 0, 0, 0, mac]),
            neighbours: vec![Neighbour {
                system_name: "leaf1".to_owned(),
                port_id: "swp1".to_owned(),
                ..Neighbour::default()
            }],
        }];
        machine
    }

    #[test]
    fn a_crowd_of_rivals_costs_no_more_than_two() {
        for hears in [false, true] {
            for one_mac in [false, true] {
                let mut tables = Tables::new();
                let mut leaf = Switch::unknown("leaf1".parse().unwrap(), "hall".parse().unwrap());
                leaf.hears = hears;
                tables.put_raw(Arc::new(leaf), 1);
                for number in 0..CROWD {
                    let machine = rival(number, if one_mac { 1 } else { number });
                    let found = concerned(&tables, &machine);
                    assert!(found.len() <= 1, "{number}, {hears}, {one_mac}: {found:?}");
                    tables.put_raw(Arc::new(machine), 1);
                }
            }
        }
    }
}
