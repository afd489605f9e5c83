//! The binding of flows to their networks as lines.

use std::collections::BTreeSet;

use crate::compile::flow_mark::BoundFlow;
use crate::compile::flow_numbers::FlowNumbers;
use crate::compile::source_rule::SourceCheck;
use crate::rule::RuleSet;

/// The match of ICMP redirects.
const REDIRECTS: &str = "ct state related icmp type redirect";

/// The flows of a firewall without a history.
fn flows(rules: &RuleSet) -> Vec<BoundFlow> {
    BoundFlow::all(rules, &FlowNumbers::of(rules))
}

/// The lines about packets of established flows, and related ones.
pub(super) fn known(rules: &RuleSet, check: &SourceCheck) -> Vec<String> {
    lines(rules, &format!("jump {}", check.spoofed))
}

/// The same for flows of the firewall itself.
pub(super) fn known_of_own(rules: &RuleSet) -> Vec<String> {
    lines(rules, "counter drop")
}

fn lines(rules: &RuleSet, drop: &str) -> Vec<String> {
    let flows = flows(rules);
    let mut lines = Vec::new();
    let bound = |state: &str, is_reply: bool| {
        let pairs = flows.iter().flat_map(|flow| {
            let interfaces = if is_reply { &flow.to } else { &flow.from };
            let names = interfaces.iter();
            names.map(move |name| format!("{:#010x} . \"{name}\"", flow.mark))
        });
        let (list, direction) = (list(pairs), if is_reply { "reply" } else { "original" });
        format!(
            "ct state {state} ct direction {direction} ct mark . iifname {{ {list} }} counter accept"
        )
    };
    if !flows.is_empty() {
        lines.extend([false, true].map(|is_reply| bound("established", is_reply)));
    }
    lines.push(format!("{REDIRECTS} {drop}"));
    if !flows.is_empty() {
        lines.extend([false, true].map(|is_reply| bound("related", is_reply)));
        let marks = list(flows.iter().map(|flow| format!("{:#010x}", flow.mark)));
        // Before flows that are not bound.
        lines.push(format!(
            "ct state established,related ct mark {{ {marks} }} {drop}"
        ));
    }
    lines.push("ct state established,related counter accept".to_owned());
    lines
}

/// The line that marks a flow of the firewall itself, by the interface of its first packet.
pub(super) fn first_of_own(rules: &RuleSet, is_input: bool) -> Option<String> {
    let flows = flows(rules);
    let elements = flows.iter().flat_map(|flow| {
        let (own, other) = if is_input {
            (&flow.to, &flow.from)
        } else {
            (&flow.from, &flow.to)
        };
        let others = other.iter().filter(|_| own.is_empty());
        others.map(|name| format!("\"{name}\" : {:#010x}", flow.mark))
    });
    let (list, name) = (list(elements), if is_input { "iifname" } else { "oifname" });
    let state = if is_input {
        ""
    } else {
        "ct state new meta skuid != 4294967295 "
    };
    (!list.is_empty()).then(|| format!("{state}ct mark set {name} map {{ {list} }}"))
}

/// The line that marks a flow, by the interfaces of its first packet.
pub(super) fn first(rules: &RuleSet) -> Option<String> {
    let flows = flows(rules);
    let elements = flows.iter().flat_map(|flow| {
        let inputs = flow.from.iter();
        inputs.flat_map(move |input| {
            let outputs = flow.to.iter();
            outputs.map(move |output| {
                let mark = flow.mark;
                format!("\"{input}\" . \"{output}\" : {mark:#010x}")
            })
        })
    });
    let list = list(elements);
    (!list.is_empty()).then(|| format!("ct mark set iifname . oifname map {{ {list} }}"))
}

/// Elements of a set, each once: nft refuses some sets with an element twice.
fn list(elements: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = elements.collect();
    let all: Vec<String> = all.into_iter().collect();
    all.join(", ")
}
