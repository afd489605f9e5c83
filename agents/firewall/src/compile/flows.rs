//! Binds flows to the networks of their first packet.
//!
//! Connection tracking knows a flow by its addresses and ports alone, so that a host of another
//! network that knows them could send packets into it. The first packet that passes the check of
//! sources marks its flow with both networks. A later one passes as established only if it comes from
//! the network of its direction; one that comes from elsewhere is dropped as its source is not that
//! network's. Messages about a flow, such as ICMP errors, have its mark and their own direction: they come
//! from its networks, too. A redirect is no error, and passes from nowhere. A flow with another mark is not
//! bound: it began before the agent marked flows, or a network of it is gone.

use std::collections::BTreeMap;

use super::epoch;
use super::flow_mark::BoundFlow;
use super::flow_numbers::FlowNumbers;
use super::frame::{
    ESTABLISHED, STATE_ESTABLISHED, STATE_NEW, STATE_RELATED, by_state, in_state, interface_key,
    rule,
};
use super::keys;
use crate::model::{
    BaseChain, Chain, Element, Expression, MetaKey, NftRule, NftSet, NftTable, PayloadBase,
    Register, SetSpec, Verdict,
};
use crate::rule::{RuleSet, protocol_number};

/// Begin of the names of the maps from interfaces to the mark of a flow; an epoch follows.
pub(super) const FIRST: &str = "flow-first.";
/// Base chain of packets of the firewall itself.
const OUTPUT: &str = "output";
/// Type of an ICMP redirect. Connection tracking refuses those of IPv6.
const REDIRECT: u8 = 5;
/// Direction of replies, as the kernel has it.
const REPLY: u8 = 1;
/// Length of the fields of a key, bytes: direction, mark, name of an interface.
const DIRECTION_LEN: u32 = 4;
const MARK_LEN: u32 = 4;
const INTERFACE_LEN: u32 = 16;
/// Register of the mark that a first packet gets: behind both interfaces.
const NEW_MARK: Register = 8;

/// The rules about flows.
pub(super) struct FlowRules {
    /// Packets of established flows, and related ones.
    pub(super) known: Vec<NftRule>,
    /// The first packet of a flow, after the check of its source.
    pub(super) first: Vec<NftRule>,
}

/// Adds the sets of the networks' flows; returns the rules. `spoofed` is the chain for packets that
/// come from another network.
pub(super) fn add(
    table: &mut NftTable,
    rules: &RuleSet,
    numbers: &FlowNumbers,
    spoofed: &str,
) -> FlowRules {
    let drop = |expressions| rule(expressions, Some(Verdict::Jump(spoofed.to_owned())));
    let flows = BoundFlow::all(rules, numbers);
    let epoch = (!flows.is_empty()).then(|| epoch::of_flows(&flows));
    let known = known(epoch.as_deref(), ESTABLISHED, drop);
    let Some(epoch) = epoch else {
        let first = Vec::new();
        return FlowRules { known, first };
    };
    let first = format!("{FIRST}{epoch}");
    table.sets.insert(sides(&epoch), side_set(&flows));
    table.sets.insert(marks(&epoch), mark_set(&flows));
    table.sets.insert(first.clone(), first_map(&flows));
    let both = vec![name(MetaKey::InputName, 0), name(MetaKey::OutputName, 4)];
    let mark = set_mark(both, first);
    FlowRules {
        known,
        first: vec![rule(mark, None)],
    }
}

/// Adds what binds the flows of the firewall itself: the mark of those that it begins, in a chain of its
/// own; returns the rules about those that others begin. `spoofed` is the counter of packets that come from
/// another network, `established` that of the others.
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
    let flows = BoundFlow::all(rules, numbers);
    let epoch = (!flows.is_empty()).then(|| epoch::of_flows(&flows));
    let known = known(epoch.as_deref(), established, drop);
    let Some(epoch) = epoch else {
        let first = Vec::new();
        return FlowRules { known, first };
    };
    let [to_own, from_own] = [("flow-in", true), ("flow-out", false)].map(|(begin, is_input)| {
        let set = format!("{begin}.{epoch}");
        table.sets.insert(set.clone(), own_map(&flows, is_input));
        let key = if is_input {
            MetaKey::InputName
        } else {
            MetaKey::OutputName
        };
        set_mark(vec![name(key, 0)], set)
    });
    let mut begun = in_state(STATE_NEW);
    begun.extend(is_own());
    begun.extend(from_own);
    let output = Chain {
        base: Some(BaseChain::Output),
        rules: vec![rule(begun, None)],
    };
    table.chains.insert(OUTPUT.to_owned(), output);
    FlowRules {
        known,
        first: vec![rule(to_own, None)],
    }
}

/// What happens to packets of known flows: those that come from their flow's network pass, and so do those
/// of flows that are not bound. The epoch is that of the sets of bound flows, if there are any.
fn known(
    epoch: Option<&str>,
    established: &str,
    drop: impl Fn(Vec<Expression>) -> NftRule,
) -> Vec<NftRule> {
    let accept = || Some(Verdict::Accept);
    let both = STATE_ESTABLISHED | STATE_RELATED;
    let redirects = drop(redirects());
    let unbound = rule(by_state(both, established), accept());
    let Some(epoch) = epoch else {
        return vec![redirects, unbound];
    };
    let [bound, related] = [STATE_ESTABLISHED, STATE_RELATED].map(|state| {
        let mut expressions = bound(state, sides(epoch));
        expressions.push(Expression::Count(established.to_owned()));
        rule(expressions, accept())
    });
    let mut foreign = in_state(both);
    foreign.extend([Expression::CtMark { register: 0 }, lookup(marks(epoch))]);
    // Established flows before all others: nearly every packet is of one.
    vec![bound, redirects, related, drop(foreign), unbound]
}

/// Name of the set of the interfaces that packets of a flow come in by.
fn sides(epoch: &str) -> String {
    format!("flow-sides.{epoch}")
}

/// Name of the set of the networks' marks.
fn marks(epoch: &str) -> String {
    format!("flow-marks.{epoch}")
}

/// Matches packets that a process of the firewall sends. A packet that is forwarded from one VRF to another
/// leaves the first one as if the firewall had sent it, and has a mark already.
fn is_own() -> [Expression; 2] {
    let key = MetaKey::SocketUser;
    [
        Expression::Meta { key, register: 0 },
        // Nobody has this number: every user matches.
        Expression::NotEqual {
            register: 0,
            value: u32::MAX.to_ne_bytes().to_vec(),
        },
    ]
}

/// The mark of a flow of the firewall itself, by the interface of its first packet.
fn own_map(flows: &[BoundFlow], is_input: bool) -> NftSet {
    let mut elements = BTreeMap::new();
    for flow in flows {
        let (own, other) = if is_input {
            (&flow.to, &flow.from)
        } else {
            (&flow.from, &flow.to)
        };
        if own.is_empty() {
            for interface in other {
                let mark = Element::Data(flow.mark.to_ne_bytes().to_vec());
                elements.insert(interface_key(interface), mark);
            }
        }
    }
    let spec = SetSpec {
        data_type: Some(SetSpec::MARK),
        data_len: MARK_LEN,
        ..SetSpec::members(SetSpec::INTERFACE, INTERFACE_LEN)
    };
    NftSet { spec, elements }
}

/// Gives a flow the mark that a map has for a key, which is loaded before.
fn set_mark(mut key: Vec<Expression>, set: String) -> Vec<Expression> {
    key.extend([
        Expression::Lookup {
            set,
            register: 0,
            destination: Some(NEW_MARK),
        },
        Expression::SetCtMark { register: NEW_MARK },
    ]);
    key
}

/// Matches packets in a state that come from their flow's network.
fn bound(state: u32, sides: String) -> Vec<Expression> {
    let mut expressions = in_state(state);
    expressions.extend([
        Expression::CtDirection { register: 0 },
        Expression::CtMark { register: 1 },
        name(MetaKey::InputName, 2),
        lookup(sides),
    ]);
    expressions
}

/// Matches ICMP redirects. They lead the traffic of a host of the network that they go to elsewhere.
pub(super) fn redirects() -> Vec<Expression> {
    let is = |value| Expression::Equal {
        register: 0,
        value: vec![value],
    };
    let mut expressions = in_state(STATE_RELATED);
    expressions.extend(keys::family(true));
    expressions.extend([
        Expression::Meta {
            key: MetaKey::Protocol,
            register: 0,
        },
        is(protocol_number::ICMP),
        Expression::Payload {
            base: PayloadBase::Transport,
            offset: 0,
            length: 1,
            register: 0,
        },
        is(REDIRECT),
    ]);
    expressions
}

fn name(key: MetaKey, register: Register) -> Expression {
    Expression::Meta { key, register }
}

fn lookup(set: String) -> Expression {
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

/// The mark of a flow, by the interfaces of its first packet.
fn first_map(flows: &[BoundFlow]) -> NftSet {
    let mut elements = BTreeMap::new();
    for flow in flows {
        for input in &flow.from {
            for output in &flow.to {
                let key = [interface_key(input), interface_key(output)].concat();
                let mark = Element::Data(flow.mark.to_ne_bytes().to_vec());
                elements.insert(key, mark);
            }
        }
    }
    let kind = SetSpec::INTERFACE << 6 | SetSpec::INTERFACE;
    let spec = SetSpec {
        data_type: Some(SetSpec::MARK),
        data_len: MARK_LEN,
        ..SetSpec::members(kind, 2 * INTERFACE_LEN)
    };
    NftSet { spec, elements }
}
