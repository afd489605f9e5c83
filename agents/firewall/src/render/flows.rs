//! The binding of flows to their networks as lines.

use std::collections::BTreeSet;

use crate::compile::flow_mark::BoundFlow;
use crate::compile::source_rule::SourceCheck;
use crate::rule::RuleSet;

/// The lines about packets of established flows, and related ones.
pub(super) fn known(rules: &RuleSet, check: &SourceCheck) -> Vec<String> {
    let flows = BoundFlow::all(rules);
    let mut lines = vec![
        "ct state related counter accept".to_owned(),
        "ct state established counter accept".to_owned(),
    ];
    if flows.is_empty() {
        return lines;
    }
    for (direction, is_reply) in [("reply", true), ("original", false)] {
        let pairs = flows.iter().flat_map(|flow| {
            let interfaces = if is_reply { &flow.to } else { &flow.from };
            let names = interfaces.iter();
            names.map(move |name| format!("{:#010x} . \"{name}\"", flow.mark))
        });
        let list = list(pairs);
        let line = format!(
            "ct state established ct direction {direction} ct mark . iifname {{ {list} }} counter \
             accept"
        );
        lines.insert(0, line);
    }
    let marks = list(flows.iter().map(|flow| format!("{:#010x}", flow.mark)));
    let foreign = format!(
        "ct state established ct mark {{ {marks} }} jump {}",
        check.spoofed
    );
    // Before flows that are not bound.
    lines.insert(3, foreign);
    lines
}

/// The line that marks a flow, by the interfaces of its first packet.
pub(super) fn first(rules: &RuleSet) -> Option<String> {
    let flows = BoundFlow::all(rules);
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
    (!flows.is_empty()).then(|| format!("ct mark set iifname . oifname map {{ {list} }}"))
}

/// Elements of a set, each once: nft refuses some sets with an element twice.
fn list(elements: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = elements.collect();
    let all: Vec<String> = all.into_iter().collect();
    all.join(", ")
}
