//! Marks a flow with both of its networks, by its first packet.
//!
//! Packets of a flow that nobody answers all are first ones: if the flow has the mark already, the chain
//! ends before. The mark is set in parts, by constants: a map from interfaces to whole marks would
//! overwrite the bits that programs of a VPN use for themselves.

use std::collections::BTreeMap;

use super::flow_mark::{FlowSide, OTHERS, TO_BITS, from_part, to_part};
use super::flows::{INTERFACE_LEN, MARK_LEN, REPLY, flow_mark, lookup, name, sides_set};
use super::frame::{STATE_NEW, add_interfaces, by_interface, in_state, interface_key, rule};
use crate::model::{
    BaseChain, Chain, Element, Expression, MetaKey, NftRule, NftSet, NftTable, SetSpec, Verdict,
};

/// Base chain of packets of the firewall itself.
const OUTPUT: &str = "output";

/// A side that packets come in from or leave to, with the set of its interfaces.
struct FlowEnd<'a> {
    side: &'a FlowSide,
    set: String,
}

/// Adds what marks forwarded flows; returns the rule that leads to it.
pub(super) fn add_forwarded(table: &mut NftTable, sides: &[FlowSide], epoch: &str) -> NftRule {
    let all = format!("flow-ends.{epoch}");
    let names = sides.iter().flat_map(|side| &side.interfaces);
    add_interfaces(table, &all, names);
    let ends = add_ends(table, sides, epoch);
    let mut marked = is_end(0, MetaKey::InputName, epoch);
    marked.extend(is_end(REPLY, MetaKey::OutputName, epoch));
    let mut chain = ending_with(marked);
    for end in &ends {
        let mut from = by_interface(MetaKey::InputName, &end.set);
        from.extend(set_mark(OTHERS, from_part(end.side)));
        chain.rules.push(rule(from, None));
    }
    for end in &ends {
        let mut to = by_interface(MetaKey::OutputName, &end.set);
        to.extend(set_mark(!TO_BITS, to_part(end.side)));
        chain.rules.push(rule(to, None));
    }
    let mut both = by_interface(MetaKey::InputName, &all);
    both.extend(by_interface(MetaKey::OutputName, &all));
    let jump = add_chain(table, format!("flow-first.{epoch}"), chain);
    rule(both, Some(jump))
}

/// Adds what marks flows of the firewall itself: those that it begins, in a base chain of its own, and
/// those that others begin; returns the rule that leads to the latter.
pub(super) fn add_own(table: &mut NftTable, sides: &[FlowSide], epoch: &str) -> NftRule {
    let ends = add_ends(table, sides, epoch);
    let marked = format!("flow-own.{epoch}");
    table.sets.insert(marked.clone(), marked_set(&ends));
    let [to_own, from_own] = [
        ("flow-in", MetaKey::InputName),
        ("flow-out", MetaKey::OutputName),
    ]
    .map(|(begin, key)| {
        let mut is_marked = flow_mark(0).to_vec();
        is_marked.extend([name(key, 1), lookup(marked.clone())]);
        let mut chain = ending_with(is_marked);
        for end in &ends {
            let [to_own, from_own] = own_marks(end.side);
            let mark = if key == MetaKey::InputName {
                to_own
            } else {
                from_own
            };
            let mut first = by_interface(key, &end.set);
            first.extend(set_mark(OTHERS, mark));
            chain.rules.push(rule(first, None));
        }
        add_chain(table, format!("{begin}.{epoch}"), chain)
    });
    let mut begun = in_state(STATE_NEW);
    begun.extend(is_own());
    let output = Chain {
        base: Some(BaseChain::Output),
        rules: vec![rule(begun, Some(from_own))],
    };
    table.chains.insert(OUTPUT.to_owned(), output);
    rule(Vec::new(), Some(to_own))
}

/// Adds the sets of the interfaces of each side. The firewall itself has none.
fn add_ends<'a>(table: &mut NftTable, sides: &'a [FlowSide], epoch: &str) -> Vec<FlowEnd<'a>> {
    let sides = sides.iter().filter(|side| !side.interfaces.is_empty());
    let ends = sides.map(|side| {
        let set = format!("flow-end.{epoch}.{}", side.number);
        add_interfaces(table, &set, &side.interfaces);
        FlowEnd { side, set }
    });
    ends.collect()
}

/// Adds a chain; returns the jump to it.
fn add_chain(table: &mut NftTable, name: String, chain: Chain) -> Verdict {
    table.chains.insert(name.clone(), chain);
    Verdict::Jump(name)
}

/// A chain that packets that match leave at once.
fn ending_with(expressions: Vec<Expression>) -> Chain {
    Chain {
        base: None,
        rules: vec![rule(expressions, Some(Verdict::Return))],
    }
}

/// Matches packets of flows whose mark has the network of an interface, as packets of a direction have it.
fn is_end(direction: u8, key: MetaKey, epoch: &str) -> Vec<Expression> {
    let mut expressions = vec![Expression::Load {
        register: 0,
        value: vec![direction, 0, 0, 0],
    }];
    expressions.extend(flow_mark(1));
    expressions.extend([name(key, 2), lookup(sides_set(epoch))]);
    expressions
}

/// Keeps the bits of a mask in the mark of a flow, and sets others.
fn set_mark(mask: u32, value: u32) -> [Expression; 3] {
    let register = 0;
    [
        Expression::CtMark { register },
        Expression::Replace {
            register,
            mask: mask.to_ne_bytes().to_vec(),
            value: value.to_ne_bytes().to_vec(),
        },
        Expression::SetCtMark { register },
    ]
}

/// Matches packets that a process of the firewall sends. A packet that is forwarded from one VRF to another
/// leaves the first one as if the firewall had sent it, and has a mark already.
fn is_own() -> [Expression; 2] {
    [
        name(MetaKey::SocketUser, 0),
        // Nobody has this number: every user matches.
        Expression::NotEqual {
            register: 0,
            value: u32::MAX.to_ne_bytes().to_vec(),
        },
    ]
}

/// The marks of flows between a side and the firewall itself: of those to it, and of those from it.
fn own_marks(side: &FlowSide) -> [u32; 2] {
    let own = FlowSide::own();
    [(side, &own), (&own, side)].map(|(from, to)| from_part(from) | to_part(to))
}

/// The marks of flows of the firewall itself, each with the interfaces at their other end.
fn marked_set(ends: &[FlowEnd<'_>]) -> NftSet {
    let mut elements = BTreeMap::new();
    for side in ends.iter().map(|end| end.side) {
        for (mark, interface) in own_marks(side)
            .into_iter()
            .flat_map(|mark| side.interfaces.iter().map(move |name| (mark, name)))
        {
            let mut key = mark.to_ne_bytes().to_vec();
            key.extend(interface_key(interface));
            elements.insert(key, Element::Member);
        }
    }
    let kind = SetSpec::MARK << 6 | SetSpec::INTERFACE;
    let spec = SetSpec::members(kind, MARK_LEN + INTERFACE_LEN);
    NftSet { spec, elements }
}
