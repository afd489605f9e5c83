//! Binds flows to the networks of their first packet.
//!
//! Connection tracking knows a flow by its addresses and ports alone, so that a host of another
//! network that knows them could send packets into it. The first packet that passes the check of
//! sources marks its flow with both networks. A later one passes as established only if it comes from
//! the network of its direction; one that comes from elsewhere is dropped as its source is not that
//! network's. A flow with another mark is not bound: it began before the agent marked flows, or a
//! network of it is gone.

use std::collections::BTreeMap;

use super::epoch;
use super::flow_mark::BoundFlow;
use super::frame::{
    ESTABLISHED, STATE_ESTABLISHED, STATE_RELATED, by_state, in_state, interface_key, rule,
};
use crate::model::{
    Element, Expression, MetaKey, NftRule, NftSet, NftTable, Register, SetSpec, Verdict,
};
use crate::rule::RuleSet;

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
pub(super) fn add(table: &mut NftTable, rules: &RuleSet, spoofed: &str) -> FlowRules {
    let accept = Some(Verdict::Accept);
    let mut known = vec![
        // An error message about a flow comes from any router on its way.
        rule(by_state(STATE_RELATED, ESTABLISHED), accept.clone()),
        rule(by_state(STATE_ESTABLISHED, ESTABLISHED), accept.clone()),
    ];
    let flows = BoundFlow::all(rules);
    if flows.is_empty() {
        let first = Vec::new();
        return FlowRules { known, first };
    }
    let epoch = epoch::of_flows(rules);
    let sides = format!("flow-sides.{epoch}");
    let marks = format!("flow-marks.{epoch}");
    let first = format!("flow-first.{epoch}");
    table.sets.insert(sides.clone(), side_set(&flows));
    table.sets.insert(marks.clone(), mark_set(&flows));
    table.sets.insert(first.clone(), first_map(&flows));
    // Before all others: nearly every packet is such a one.
    let mut bound = in_state(STATE_ESTABLISHED);
    bound.extend([
        Expression::CtDirection { register: 0 },
        Expression::CtMark { register: 1 },
        name(MetaKey::InputName, 2),
        lookup(sides),
        Expression::Count(ESTABLISHED.to_owned()),
    ]);
    let mut foreign = in_state(STATE_ESTABLISHED);
    foreign.extend([Expression::CtMark { register: 0 }, lookup(marks)]);
    let drop = Some(Verdict::Jump(spoofed.to_owned()));
    known.insert(0, rule(bound, accept));
    known.insert(2, rule(foreign, drop));
    let mark = vec![
        name(MetaKey::InputName, 0),
        name(MetaKey::OutputName, 4),
        Expression::Lookup {
            set: first,
            register: 0,
            destination: Some(NEW_MARK),
        },
        Expression::SetCtMark { register: NEW_MARK },
    ];
    FlowRules {
        known,
        first: vec![rule(mark, None)],
    }
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
