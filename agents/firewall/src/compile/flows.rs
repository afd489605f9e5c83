//! Binds flows to the networks of their first packet.
//!
//! Connection tracking knows a flow by its addresses and ports alone, so that a host of another
//! network that knows them could send packets into it. The first packet that passes the check of
//! sources marks its flow with both networks ([`super::flow_marking`]). A later one passes as established
//! only if it comes from the network of its direction; one that comes from elsewhere is dropped as its
//! source is not that network's, also while the flow has no answer yet. Messages about a flow, such as
//! ICMP errors, have its mark and their own direction: they come from its networks, too. A redirect is no
//! error, and passes from nowhere.
//!
//! A flow with another mark is not bound: it began before the agent marked flows, or a network of it is
//! gone. Its packets meet the check of sources first.

use std::collections::BTreeMap;

use super::epoch;
use super::flow_mark::{BoundFlow, FlowSide, OTHERS};
use super::flow_marking;
use super::flow_numbers::FlowNumbers;
use super::frame::{
    ESTABLISHED, STATE_ESTABLISHED, STATE_RELATED, by_state, in_state, interface_key, rule,
};
use super::keys;
use crate::model::{
    Element, Expression, MetaKey, NftRule, NftSet, NftTable, Register, SetSpec, Verdict,
};
use crate::rule::{RuleSet, protocol_number};

/// Begin of the names of the sets of the interfaces that packets of a flow come in by; an epoch follows.
pub(super) const SIDES: &str = "flow-sides.";
/// Types of ICMP redirects, by their protocols.
const REDIRECTS: [(bool, u8, u8); 2] = [
    (true, protocol_number::ICMP, 5),
    (false, protocol_number::ICMP6, 137),
];
/// Direction of replies, as the kernel has it.
pub(super) const REPLY: u8 = 1;
/// Length of the fields of a key, bytes: direction, mark, name of an interface.
const DIRECTION_LEN: u32 = 4;
pub(super) const MARK_LEN: u32 = 4;
pub(super) const INTERFACE_LEN: u32 = 16;

/// The rules about flows.
pub(super) struct FlowRules {
    /// Packets of bound flows, and messages about them.
    pub(super) known: Vec<NftRule>,
    /// Packets of other flows that were accepted before. It comes after the check of sources.
    pub(super) unbound: NftRule,
    /// The first packet of a flow, after that.
    pub(super) first: Vec<NftRule>,
}

/// Adds the sets and chains of the networks' flows; returns the rules. `spoofed` is the chain for packets
/// that come from another network.
pub(super) fn add(
    table: &mut NftTable,
    rules: &RuleSet,
    numbers: &FlowNumbers,
    spoofed: &str,
) -> FlowRules {
    let drop = |expressions| rule(expressions, Some(Verdict::Jump(spoofed.to_owned())));
    let sides = FlowSide::all(rules, numbers);
    let epoch = add_sets(table, &sides);
    let mark = |epoch: &str| flow_marking::add_forwarded(table, &sides, epoch);
    flow_rules(epoch.as_deref(), ESTABLISHED, drop, mark)
}

/// Adds the sets and chains of the flows of the firewall itself; returns the rules about those that others
/// begin. `spoofed` is the counter of packets that come from another network, `established` that of the
/// others.
pub(super) fn add_own(
    table: &mut NftTable,
    rules: &RuleSet,
    numbers: &FlowNumbers,
    established: &str,
    spoofed: &str,
) -> FlowRules {
    let drop = |mut expressions: Vec<Expression>| {
        expressions.push(Expression::Count(spoofed.to_owned()));
        rule(expressions, Some(Verdict::Drop))
    };
    let sides = FlowSide::all(rules, numbers);
    let epoch = add_sets(table, &sides);
    let mark = |epoch: &str| flow_marking::add_own(table, &sides, epoch);
    flow_rules(epoch.as_deref(), established, drop, mark)
}

/// Adds the sets that both hooks look bound flows up in; returns their epoch. `None` if there is no
/// network.
fn add_sets(table: &mut NftTable, sides: &[FlowSide]) -> Option<String> {
    let flows = BoundFlow::all(sides);
    if flows.is_empty() {
        return None;
    }
    let epoch = epoch::of_flows(&flows);
    table.sets.insert(sides_set(&epoch), side_set(&flows));
    table.sets.insert(marks_set(&epoch), mark_set(&flows));
    Some(epoch)
}

/// The rules. Packets of bound flows pass if they come from their flow's network. The epoch is that of the
/// sets of bound flows, if there are any; `mark` adds what marks a flow.
fn flow_rules(
    epoch: Option<&str>,
    established: &str,
    drop: impl Fn(Vec<Expression>) -> NftRule,
    mark: impl FnOnce(&str) -> NftRule,
) -> FlowRules {
    let accept = || Some(Verdict::Accept);
    let both = STATE_ESTABLISHED | STATE_RELATED;
    let redirects = redirects().into_iter().map(&drop);
    let unbound = rule(by_state(both, established), accept());
    let Some(epoch) = epoch else {
        return FlowRules {
            known: redirects.collect(),
            unbound,
            first: Vec::new(),
        };
    };
    let [bound, related] = [STATE_ESTABLISHED, STATE_RELATED].map(|state| {
        let mut expressions = in_state(state);
        expressions.extend(side_key());
        expressions.push(lookup(sides_set(epoch)));
        expressions.push(Expression::Count(established.to_owned()));
        rule(expressions, accept())
    });
    let has_our_mark = || {
        let mut expressions = flow_mark(0).to_vec();
        expressions.push(lookup(marks_set(epoch)));
        expressions
    };
    // Those of its networks have passed before.
    let mut foreign = in_state(both);
    foreign.extend(has_our_mark());
    // Established flows before all others: nearly every packet is of one.
    let mut known = vec![bound];
    known.extend(redirects);
    known.extend([related, drop(foreign)]);
    // Nobody answered yet, and another network has begun it.
    let mut taken = side_key().to_vec();
    taken.push(Expression::LookupMissing {
        set: sides_set(epoch),
        register: 0,
    });
    taken.extend(has_our_mark());
    FlowRules {
        known,
        unbound,
        first: vec![drop(taken), mark(epoch)],
    }
}

/// Name of the set of the interfaces that packets of a flow come in by.
pub(super) fn sides_set(epoch: &str) -> String {
    format!("{SIDES}{epoch}")
}

/// Name of the set of the networks' marks.
fn marks_set(epoch: &str) -> String {
    format!("flow-marks.{epoch}")
}

/// Loads the key of a packet in the set of sides, from register 0 on.
fn side_key() -> [Expression; 4] {
    let [load, mask] = flow_mark(1);
    [
        Expression::CtDirection { register: 0 },
        load,
        mask,
        name(MetaKey::InputName, 2),
    ]
}

/// Loads our part of the mark of a flow.
pub(super) fn flow_mark(register: Register) -> [Expression; 2] {
    let mask = (!OTHERS).to_ne_bytes().to_vec();
    [
        Expression::CtMark { register },
        Expression::Mask { register, mask },
    ]
}

/// Matches ICMP redirects. They lead the traffic of a host of the network that they go to elsewhere.
fn redirects() -> [Vec<Expression>; 2] {
    REDIRECTS.map(|(is_ipv4, protocol, kind)| {
        let mut expressions = in_state(STATE_RELATED);
        expressions.extend(keys::family(is_ipv4));
        expressions.extend(keys::icmp_type(protocol, kind));
        expressions
    })
}

pub(super) fn name(key: MetaKey, register: Register) -> Expression {
    Expression::Meta { key, register }
}

pub(super) fn lookup(set: String) -> Expression {
    Expression::Lookup {
        set,
        register: 0,
        destination: None,
    }
}

/// The interfaces that packets of a flow come in by, with their direction and the flow's mark.
fn side_set(flows: &[BoundFlow]) -> NftSet {
    let mut elements = BTreeMap::new();
    for flow in flows {
        for (direction, interfaces) in [(0, &flow.from), (REPLY, &flow.to)] {
            for interface in interfaces {
                let mut key = vec![direction, 0, 0, 0];
                key.extend(flow.mark.to_ne_bytes());
                key.extend(interface_key(interface));
                elements.insert(key, Element::Member);
            }
        }
    }
    let kind = SetSpec::CT_DIRECTION << 12 | SetSpec::MARK << 6 | SetSpec::INTERFACE;
    let spec = SetSpec::members(kind, DIRECTION_LEN + MARK_LEN + INTERFACE_LEN);
    NftSet { spec, elements }
}

/// The marks of the networks' flows.
fn mark_set(flows: &[BoundFlow]) -> NftSet {
    let keys = flows.iter().map(|flow| flow.mark.to_ne_bytes().to_vec());
    NftSet {
        spec: SetSpec::members(SetSpec::MARK, MARK_LEN),
        elements: keys.map(|key| (key, Element::Member)).collect(),
    }
}
