use std::collections::{BTreeMap, BTreeSet};

use super::flow_mark::{from_of, sides};
use super::flows::FIRST;
use super::frame::INTERFACES;
use crate::model::{Element, NftSet};
use crate::rule::RuleSet;

/// Bits of a number.
pub(super) const NUMBER_BITS: u32 = 11;
/// Id of all external networks together. No network of a firewall has it.
pub(super) const EXTERNAL: &str = "";
/// Id of the firewall itself, which has no interface that its own packets come in by.
pub(super) const OWN: &str = " ";
/// Networks that are remembered. Above it those that are gone are forgotten.
const REMEMBERED_MAX: usize = 1024;
/// Ids whose numbers are the same on every firewall.
const FIXED: [&str; 2] = [EXTERNAL, OWN];
/// FNV-1a, 32 bits.
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The numbers by which the marks of flows name networks, no two of which have the same one.
///
/// A network has the number that its id is hashed to, or the next one that is free. It keeps it while
/// it is known, and the kernel's table says after a restart which one it has: flows outlive both.
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

    /// The numbers that the sets of a table show.
    pub(super) fn of_sets(sets: &BTreeMap<String, NftSet>) -> Self {
        let mut found = Self::default();
        let mut taken = BTreeSet::from(FIXED.map(preferred));
        let firsts: Vec<&NftSet> = sets
            .iter()
            .filter(|(name, _)| name.starts_with(FIRST))
            .map(|(_, set)| set)
            .collect();
        for (name, set) in sets {
            let (Some(id), Some(interface)) =
                (name.strip_prefix(INTERFACES), set.elements.keys().next())
            else {
                continue;
            };
            // Flows within the network.
            let key = [interface.as_slice(), interface].concat();
            let mark = firsts.iter().find_map(|first| first.elements.get(&key));
            if let Some(Element::Data(mark)) = mark
                && let Ok(mark) = mark.as_slice().try_into()
                && let Some(number) = from_of(u32::from_ne_bytes(mark))
                && taken.insert(number)
            {
                found.by_side.insert(id.to_owned(), number);
            }
        }
        found
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

/// The number that a network has if it is free.
fn preferred(id: &str) -> u32 {
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
    }
}
