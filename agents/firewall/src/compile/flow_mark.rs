use std::collections::BTreeMap;

use super::flow_numbers::{EXTERNAL, FlowNumbers, NUMBER_BITS, OWN};
use crate::rule::{Network, NetworkKind, RuleSet};

/// A mark of a bound flow has it, so that none is 0.
const IS_BOUND: u32 = 1 << (2 * NUMBER_BITS + 1);
/// The bits of a number.
const NUMBER: u32 = (1 << NUMBER_BITS) - 1;

/// The flows from one network to another, or within one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BoundFlow {
    /// Mark of these flows.
    pub(crate) mark: u32,
    /// Interfaces that the first packet comes in by, and all later ones of its direction.
    pub(crate) from: Vec<String>,
    /// Interfaces that the first packet leaves by, and replies come in by.
    pub(crate) to: Vec<String>,
}

impl BoundFlow {
    /// The flows between the networks of a firewall, which must have numbers. External networks are one:
    /// a reply may come another way than the packet went. The firewall itself is one without interfaces.
    pub(crate) fn all(rules: &RuleSet, numbers: &FlowNumbers) -> Vec<Self> {
        let sides = sides(rules);
        let numbered: Vec<(u32, &Vec<String>)> = sides
            .iter()
            .filter_map(|(side, interfaces)| Some((numbers.of_side(side)?, interfaces)))
            .collect();
        let pairs = numbered.iter().flat_map(|from| {
            let to = numbered.iter();
            to.map(move |to| (*from, *to))
        });
        pairs
            .map(|((from, inputs), (to, outputs))| Self {
                mark: mark(from, to),
                from: inputs.clone(),
                to: outputs.clone(),
            })
            .collect()
    }
}

/// The interfaces of each side that a flow can have.
pub(super) fn sides(rules: &RuleSet) -> BTreeMap<&str, Vec<String>> {
    let mut sides: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let with_interfaces = |network: &&Network| !network.interfaces.is_empty();
    for network in rules.networks.iter().filter(with_interfaces) {
        let side = match network.kind {
            NetworkKind::External => EXTERNAL,
            NetworkKind::Private => &network.id,
            NetworkKind::Underlay => continue,
        };
        let interfaces = sides.entry(side).or_default();
        interfaces.extend(network.interfaces.iter().cloned());
    }
    if !sides.is_empty() {
        // The firewall itself: packets of its own come in by no interface.
        sides.insert(OWN, Vec::new());
    }
    sides
}

/// The mark of the flows between two networks: by their numbers alone, so that flows keep it when other
/// networks come and go. The third byte is 0: programs of a VPN use it for themselves.
fn mark(from: u32, to: u32) -> u32 {
    let all = IS_BOUND | from << NUMBER_BITS | to;
    (all & 0xFFFF) | (all & 0xFF_0000) << 8
}

/// The number of the network that a flow with a mark comes from. `None` if it is no mark of ours.
pub(super) fn from_of(mark: u32) -> Option<u32> {
    let all = (mark & 0xFFFF) | (mark >> 8 & 0xFF_0000);
    let is_ours = mark & 0xFF_0000 == 0 && all & IS_BOUND != 0;
    is_ours.then_some(all >> NUMBER_BITS & NUMBER)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn network(id: &str, kind: NetworkKind) -> Network {
        Network {
            id: id.to_owned(),
            kind,
            interfaces: vec![format!("vrf-{id}")],
            prefixes: Vec::new(),
            addresses: None,
            nat_addresses: Vec::new(),
            masquerade: false,
        }
    }

    fn rules(ids: &[&str]) -> RuleSet {
        let mut networks = vec![network("internet", NetworkKind::External)];
        networks.extend(ids.iter().map(|id| network(id, NetworkKind::Private)));
        RuleSet {
            networks,
            ..RuleSet::default()
        }
    }

    /// The marks of flows within each network.
    fn own_marks(rules: &RuleSet, numbers: &mut FlowNumbers) -> BTreeMap<String, u32> {
        numbers.admit(rules);
        let flows = BoundFlow::all(rules, numbers);
        let own = flows
            .iter()
            .filter(|flow| flow.from == flow.to && !flow.from.is_empty());
        own.map(|flow| (flow.from[0].clone(), flow.mark)).collect()
    }

    #[test]
    fn marks_are_of_both_networks_and_leave_a_byte_free() {
        // `net268` has the hash of `tenant`, and `net13` that of the external networks.
        let rules = rules(&["tenant", "net268", "net13", "one", "two"]);
        let mut numbers = FlowNumbers::default();
        numbers.admit(&rules);
        let flows = BoundFlow::all(&rules, &numbers);
        let marks: BTreeSet<u32> = flows.iter().map(|flow| flow.mark).collect();
        assert_eq!(marks.len(), 49);
        for mark in marks {
            assert!(mark & 0xFF_0000 == 0 && mark >> 31 == 1, "{mark:08x}");
        }
        // Flows in kernels have it: it never changes.
        let found = flows
            .iter()
            .find(|flow| flow.from == ["vrf-one"] && flow.to == ["vrf-two"]);
        assert_eq!(found.map(|flow| flow.mark), Some(0xAE00_8DF1));
        assert_eq!(from_of(0), None);
        assert_eq!(from_of(0xAE00_8DF1), numbers.of_side("one"));
    }

    #[test]
    fn a_network_keeps_its_mark_while_others_come_and_go() {
        let mut numbers = FlowNumbers::default();
        let before = own_marks(&rules(&["tenant"]), &mut numbers);
        // It would have the number, if it had been first.
        let both = own_marks(&rules(&["net268", "tenant"]), &mut numbers);
        assert_eq!(both["vrf-tenant"], before["vrf-tenant"]);
        assert_ne!(both["vrf-net268"], both["vrf-tenant"]);
        // Flows of one that is gone live on for a while: no other one gets its number.
        let other = own_marks(&rules(&["net268"]), &mut numbers);
        assert_eq!(other["vrf-net268"], both["vrf-net268"]);
        let again = own_marks(&rules(&["net268", "tenant"]), &mut numbers);
        assert_eq!(again, both);
    }
}
