use std::collections::BTreeMap;

use super::access::InputInterfaces;
use super::flow_numbers::{EXTERNAL, FlowNumbers, NUMBER_BITS, OWN, UNDERLAY, preferred};
use crate::rule::{Network, NetworkKind, RuleSet};

/// A mark of a bound flow has it, so that none is 0.
const IS_BOUND: u32 = 1 << (2 * NUMBER_BITS + 1);
/// The bits of a number.
const NUMBER: u32 = (1 << NUMBER_BITS) - 1;
/// The bits of a mark that are not ours: programs of a VPN use them for themselves.
pub(crate) const OTHERS: u32 = 0xFF_0000;
/// The bits of a mark that say where a flow goes to.
pub(crate) const TO_BITS: u32 = NUMBER;

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

/// One of the two networks of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowSide {
    /// Its number in marks.
    pub(crate) number: u32,
    /// Its interfaces. The firewall itself has none.
    pub(crate) interfaces: Vec<String>,
}

impl FlowSide {
    /// The firewall itself.
    pub(crate) fn own() -> Self {
        Self {
            number: preferred(OWN),
            interfaces: Vec::new(),
        }
    }

    /// The sides of a firewall's flows, which must have numbers. External networks are one: a reply may
    /// come another way than the packet went. So is the underlay.
    pub(crate) fn all(rules: &RuleSet, numbers: &FlowNumbers) -> Vec<Self> {
        let sides = sides(rules).into_iter();
        let numbered = sides.filter_map(|(side, interfaces)| {
            Some(Self {
                number: numbers.of_side(side)?,
                interfaces,
            })
        });
        numbered.collect()
    }
}

impl BoundFlow {
    /// The flows between the networks of a firewall.
    pub(crate) fn all(sides: &[FlowSide]) -> Vec<Self> {
        let pairs = sides.iter().flat_map(|from| {
            let to = sides.iter();
            to.map(move |to| Self {
                mark: mark(from.number, to.number),
                from: from.interfaces.clone(),
                to: to.interfaces.clone(),
            })
        });
        pairs.collect()
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
            // Nothing passes a closed network, and the underlay is a side below.
            NetworkKind::Closed | NetworkKind::Underlay => continue,
        };
        let interfaces = sides.entry(side).or_default();
        interfaces.extend(network.interfaces.iter().cloned());
    }
    if sides.is_empty() {
        return sides;
    }
    // The firewall itself: packets of its own come in by no interface.
    sides.insert(OWN, Vec::new());
    let underlay = underlay(rules);
    if !underlay.is_empty() {
        sides.insert(UNDERLAY, underlay);
    }
    sides
}

/// The interfaces of the underlay, which no source has to name. One that belongs to another network is
/// none of it.
fn underlay(rules: &RuleSet) -> Vec<String> {
    let is_other = |name: &String| {
        let mut networks = rules.networks.iter();
        networks.any(|own| own.kind != NetworkKind::Underlay && own.interfaces.contains(name))
    };
    let mut interfaces = InputInterfaces::of(rules).underlay;
    interfaces.retain(|name| !is_other(name));
    interfaces
}

/// The mark of the flows between two networks: by their numbers alone, so that flows keep it when other
/// networks come and go. It has none of the bits of [`OTHERS`].
fn mark(from: u32, to: u32) -> u32 {
    let all = IS_BOUND | from << NUMBER_BITS | to;
    (all & 0xFFFF) | (all & 0xFF_0000) << 8
}

/// The part of a mark that says where a flow comes from, and that it is bound.
pub(crate) fn from_part(side: &FlowSide) -> u32 {
    mark(side.number, 0)
}

/// The part of a mark that says where a flow goes to. Its bits are those of [`TO_BITS`].
pub(crate) fn to_part(side: &FlowSide) -> u32 {
    side.number & TO_BITS
}

/// The numbers of both networks of a mark. `None` if it is no mark of ours.
pub(super) fn ends_of(mark: u32) -> Option<(u32, u32)> {
    let all = (mark & 0xFFFF) | (mark >> 8 & 0xFF_0000);
    let numbers = (all >> NUMBER_BITS & NUMBER, all & NUMBER);
    (all & IS_BOUND != 0).then_some(numbers)
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
        let flows = BoundFlow::all(&FlowSide::all(rules, numbers));
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
        let sides = FlowSide::all(&rules, &numbers);
        let flows = BoundFlow::all(&sides);
        let marks: BTreeSet<u32> = flows.iter().map(|flow| flow.mark).collect();
        assert_eq!(marks.len(), 64);
        for mark in marks {
            assert!(mark & OTHERS == 0 && mark >> 31 == 1, "{mark:08x}");
        }
        // Two rules set its parts one after the other, whatever it was before.
        for (from, to) in sides.iter().zip(sides.iter().rev()) {
            let first = (0x7755_7777 & OTHERS) ^ from_part(from);
            let whole = (first & !TO_BITS) ^ to_part(to);
            assert_eq!(whole, mark(from.number, to.number) | 0x55_0000);
            assert_eq!(ends_of(whole), Some((from.number, to.number)));
        }
        // Flows in kernels have it: it never changes.
        let found = flows
            .iter()
            .find(|flow| flow.from == ["vrf-one"] && flow.to == ["vrf-two"]);
        assert_eq!(found.map(|flow| flow.mark), Some(0xAE00_8DF1));
        assert_eq!(ends_of(0), None);
        let ends = numbers.of_side("one").zip(numbers.of_side("two"));
        assert_eq!(ends_of(0xAE00_8DF1), ends);
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
