use std::collections::{BTreeMap, BTreeSet};

use super::flow_mark::{ends_of, sides};
use super::flows::SIDES;
use super::frame::INTERFACES;
use crate::model::{Element, NftSet, NftTable, SetSpec};
use crate::rule::RuleSet;

/// Bits of a number.
pub(super) const NUMBER_BITS: u32 = 11;
/// Id of all external networks together. No network of a firewall has it.
pub(super) const EXTERNAL: &str = "";
/// Id of the firewall itself, which has no interface that its own packets come in by.
pub(super) const OWN: &str = " ";
/// Id of the underlay.
pub(super) const UNDERLAY: &str = "  ";
/// Networks that are remembered. Above it those that are gone are forgotten.
const REMEMBERED_MAX: usize = 1024;
/// Ids whose numbers are the same on every firewall.
const FIXED: [&str; 3] = [EXTERNAL, OWN, UNDERLAY];
/// Begin of the names of the sets that keep the number of a network; its id follows.
const NUMBER: &str = "flow-number/";
/// Length of a number in such a set, and of a mark, bytes.
const NUMBER_LEN: usize = 4;
/// Length of the direction in a key of a set of [`SIDES`], bytes.
const DIRECTION_LEN: usize = 4;
/// FNV-1a, 32 bits.
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The numbers by which the marks of flows name networks, no two of which have the same one.
///
/// A network has the number that its id is hashed to, or the next one that is free. It keeps it while
/// it is known, also when it is gone from the rules: flows outlive both, and a later network must not
/// have their mark. The kernel's table has the numbers of all that are known, so that they outlive this
/// program as flows do.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowNumbers {
    by_side: BTreeMap<String, u32>,
}

impl FlowNumbers {
    /// The numbers of networks without a history.
    pub(crate) fn of(rules: &RuleSet) -> Self {
        let mut numbers = Self::default();
        numbers.admit(rules);
        numbers
    }

    /// The numbers that the sets of a table keep.
    pub(super) fn of_sets(sets: &BTreeMap<String, NftSet>) -> Self {
        let mut found = Self::default();
        let mut taken = BTreeSet::from(FIXED.map(preferred));
        let kept = sets.iter().filter_map(|(name, set)| {
            let id = name.strip_prefix(NUMBER)?;
            Some((id, number_of(set.elements.keys().next()?)?))
        });
        // An agent from before these sets told the numbers by the marks of flows alone.
        let marked = sets.iter().filter_map(|(name, set)| {
            let id = name.strip_prefix(INTERFACES)?;
            Some((id, number_by_flows(sets, set.elements.keys().next()?)?))
        });
        for (id, number) in kept.chain(marked) {
            if !found.by_side.contains_key(id) && taken.insert(number) {
                found.by_side.insert(id.to_owned(), number);
            }
        }
        found
    }

    /// Adds the sets that keep the numbers.
    pub(super) fn add_sets(&self, table: &mut NftTable) {
        for (side, number) in &self.by_side {
            let key = number.to_ne_bytes().to_vec();
            let set = NftSet {
                spec: SetSpec::members(SetSpec::MARK, 4),
                elements: BTreeMap::from([(key, Element::Member)]),
            };
            table.sets.insert(format!("{NUMBER}{side}"), set);
        }
    }

    /// Gives each network of a firewall a number that has none yet.
    pub(crate) fn admit(&mut self, rules: &RuleSet) {
        let sides = sides(rules);
        if self.by_side.len() > REMEMBERED_MAX {
            self.by_side
                .retain(|side, _| sides.contains_key(side.as_str()));
        }
        let mut taken: BTreeSet<u32> = self.by_side.values().copied().collect();
        // They never move.
        taken.extend(FIXED.map(preferred));
        for side in sides.keys().filter(|side| !FIXED.contains(side)) {
            if self.by_side.contains_key(*side) {
                continue;
            }
            let first = preferred(side);
            let mut all = (0..1 << NUMBER_BITS).map(|step| (first + step) % (1 << NUMBER_BITS));
            let free = all.find(|number| !taken.contains(number));
            // There are fewer networks than numbers.
            let number = free.unwrap_or(first);
            taken.insert(number);
            self.by_side.insert((*side).to_owned(), number);
        }
    }

    /// The number of a side. `None` if it was not admitted.
    pub(super) fn of_side(&self, side: &str) -> Option<u32> {
        if FIXED.contains(&side) {
            return Some(preferred(side));
        }
        self.by_side.get(side).copied()
    }
}

/// The number that a set keeps. `None` if none has it.
fn number_of(key: &[u8]) -> Option<u32> {
    let number = u32::from_ne_bytes(key.try_into().ok()?);
    (number < 1 << NUMBER_BITS).then_some(number)
}

/// The number of the network with an interface, by the flows within it.
fn number_by_flows(sets: &BTreeMap<String, NftSet>, interface: &[u8]) -> Option<u32> {
    let sides = sets.iter().filter(|(name, _)| name.starts_with(SIDES));
    let mut keys = sides.flat_map(|(_, set)| set.elements.keys());
    keys.find_map(|key| {
        let (_, rest) = key.split_at_checked(DIRECTION_LEN)?;
        let (mark, name) = rest.split_at_checked(NUMBER_LEN)?;
        let (from, to) = ends_of(u32::from_ne_bytes(mark.try_into().ok()?))?;
        (from == to && name == interface).then_some(from)
    })
}

/// The number that a network has if it is free.
pub(super) fn preferred(id: &str) -> u32 {
    let hash = id.bytes().fold(FNV_OFFSET, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME)
    });
    // FNV mixes its upper bits best.
    hash >> (u32::BITS - NUMBER_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::RuleCompiler;
    use crate::rule::{Network, NetworkKind};

    fn rules(ids: &[&str]) -> RuleSet {
        let networks = ids.iter().map(|id| Network {
            id: (*id).to_owned(),
            kind: if *id == "internet" {
                NetworkKind::External
            } else {
                NetworkKind::Private
            },
            interfaces: vec![format!("vrf-{id}")],
            prefixes: Vec::new(),
            addresses: None,
            nat_addresses: Vec::new(),
            masquerade: false,
        });
        RuleSet {
            networks: networks.collect(),
            ..RuleSet::default()
        }
    }

    #[test]
    fn the_kernels_table_tells_the_numbers_after_a_restart() {
        let mut before = FlowNumbers::of(&rules(&["internet", "tenant"]));
        let both = rules(&["internet", "tenant", "net268"]);
        before.admit(&both);
        // A compiler that begins with both gives the number to the other one.
        let fresh = FlowNumbers::of(&both);
        assert_ne!(fresh.of_side("tenant"), before.of_side("tenant"));
        let mut compiler = RuleCompiler::default();
        compiler.compile(&rules(&["internet", "tenant"]));
        let sets = compiler.compile(&both).sets.clone();
        assert_eq!(FlowNumbers::of_sets(&sets).by_side, before.by_side);
        let mut restarted = RuleCompiler::default();
        restarted.adopt(&sets);
        assert_eq!(restarted.compile(&both).sets, sets);
        // An agent from before kept no numbers, but the marks have them.
        let mut older = sets;
        older.retain(|name, _| !name.starts_with(NUMBER));
        assert_eq!(FlowNumbers::of_sets(&older).by_side, before.by_side);
    }

    #[test]
    fn a_network_that_is_gone_keeps_its_number_over_a_restart() {
        let (gone, other) = (
            rules(&["internet", "tenant"]),
            rules(&["internet", "net268"]),
        );
        let preferred = FlowNumbers::of(&gone).of_side("tenant");
        assert_eq!(FlowNumbers::of(&other).of_side("net268"), preferred);
        let mut compiler = RuleCompiler::default();
        compiler.compile(&gone);
        // Without any network, as after a roll-back to nothing.
        let mut sets = compiler.compile(&RuleSet::default()).sets.clone();
        for rules in [&other, &gone] {
            let mut restarted = RuleCompiler::default();
            restarted.adopt(&sets);
            sets = restarted.compile(rules).sets.clone();
            let numbers = FlowNumbers::of_sets(&sets);
            assert_eq!(numbers.of_side("tenant"), preferred);
            assert!(
                numbers
                    .of_side("net268")
                    .is_some_and(|own| Some(own) != preferred)
            );
        }
    }

    #[test]
    fn the_numbers_of_every_firewall_differ() {
        assert_eq!(BTreeSet::from(FIXED.map(preferred)).len(), FIXED.len());
    }
}
