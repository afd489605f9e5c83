//! The binding of flows to their networks as lines.

use std::collections::BTreeSet;

use super::quoted;
use crate::compile::flow_mark::{BoundFlow, FlowSide, OTHERS, TO_BITS, from_part, to_part};
use crate::compile::flow_numbers::FlowNumbers;
use crate::compile::source_rule::SourceCheck;
use crate::rule::RuleSet;

/// The matches of ICMP redirects.
const REDIRECTS: [&str; 2] = ["icmp type redirect", "icmpv6 type nd-redirect"];

/// The lines about the flows of a hook.
pub(super) struct FlowLines {
    /// About packets of bound flows, and messages about them.
    pub(super) known: Vec<String>,
    /// About packets of other flows that were accepted before.
    pub(super) unbound: String,
    /// About the first packet of a flow.
    pub(super) first: Vec<String>,
}

/// The lines about forwarded packets.
pub(super) fn forwarded(rules: &RuleSet, check: &SourceCheck) -> FlowLines {
    let sides = sides(rules);
    let mut lines = lines(&sides, &format!("jump {}", check.spoofed));
    let ends = ends(&sides);
    let all: Vec<String> = ends.iter().flat_map(|end| end.interfaces.clone()).collect();
    let all = quoted(&all);
    for (one, other, mask) in [
        ("iifname", "oifname", OTHERS),
        ("oifname", "iifname", !TO_BITS),
    ] {
        for end in &ends {
            let part = if one == "iifname" {
                from_part(end)
            } else {
                to_part(end)
            };
            let (names, set) = (quoted(&end.interfaces), set_mark(mask, part));
            let line = format!("{one} {{ {names} }} {other} {{ {all} }} {set}");
            lines.first.push(line);
        }
    }
    lines
}

/// The lines about packets for the firewall itself.
pub(super) fn received(rules: &RuleSet) -> FlowLines {
    let sides = sides(rules);
    let mut lines = lines(&sides, "counter drop");
    lines.first.extend(own_marks(&sides, true));
    lines
}

/// The lines that mark flows that the firewall itself begins.
pub(super) fn begun(rules: &RuleSet) -> Vec<String> {
    own_marks(&sides(rules), false)
}

/// The sides of a firewall without a history.
fn sides(rules: &RuleSet) -> Vec<FlowSide> {
    FlowSide::all(rules, &FlowNumbers::of(rules))
}

/// The sides but the firewall itself.
fn ends(sides: &[FlowSide]) -> Vec<&FlowSide> {
    let all = sides.iter();
    all.filter(|side| !side.interfaces.is_empty()).collect()
}

fn lines(sides: &[FlowSide], drop: &str) -> FlowLines {
    let flows = BoundFlow::all(sides);
    let our_mark = format!("ct mark & {:#010x}", !OTHERS);
    let of_direction = |is_reply: bool| {
        let pairs = flows.iter().flat_map(|flow| {
            let interfaces = if is_reply { &flow.to } else { &flow.from };
            let names = interfaces.iter();
            names.map(move |name| format!("{:#010x} . \"{name}\"", flow.mark))
        });
        list(pairs)
    };
    let bound = |state: &str| {
        [(false, "original"), (true, "reply")].map(|(is_reply, direction)| {
            format!(
                "ct state {state} ct direction {direction} {our_mark} . iifname {{ {} }} counter accept",
                of_direction(is_reply)
            )
        })
    };
    let redirects = REDIRECTS.map(|redirect| format!("ct state related {redirect} {drop}"));
    let unbound = "ct state established,related counter accept".to_owned();
    if flows.is_empty() {
        return FlowLines {
            known: redirects.to_vec(),
            unbound,
            first: Vec::new(),
        };
    }
    let marks = list(flows.iter().map(|flow| format!("{:#010x}", flow.mark)));
    let mut known = bound("established").to_vec();
    known.extend(redirects);
    known.extend(bound("related"));
    known.push(format!(
        "ct state established,related {our_mark} {{ {marks} }} {drop}"
    ));
    let begun = of_direction(false);
    let taken = format!("{our_mark} . iifname != {{ {begun} }} {our_mark} {{ {marks} }} {drop}");
    FlowLines {
        known,
        unbound,
        first: vec![taken],
    }
}

/// The lines that mark a flow of the firewall itself, by the interface of its first packet.
fn own_marks(sides: &[FlowSide], is_input: bool) -> Vec<String> {
    let own = FlowSide::own();
    let line = |end: &FlowSide| {
        let names = quoted(&end.interfaces);
        if is_input {
            let set = set_mark(OTHERS, from_part(end) | to_part(&own));
            format!("iifname {{ {names} }} {set}")
        } else {
            let set = set_mark(OTHERS, from_part(&own) | to_part(end));
            format!("ct state new meta skuid != 4294967295 oifname {{ {names} }} {set}")
        }
    };
    ends(sides).into_iter().map(line).collect()
}

/// Keeps the bits of a mask in the mark of a flow, and sets others.
fn set_mark(mask: u32, value: u32) -> String {
    format!("ct mark set ct mark & {mask:#010x} | {value:#010x}")
}

/// Elements of a set, each once: nft refuses some sets with an element twice.
fn list(elements: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = elements.collect();
    let all: Vec<String> = all.into_iter().collect();
    all.join(", ")
}
