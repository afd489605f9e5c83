//! Which rule decides about a flow.

use std::net::IpAddr;

use serde::Serialize;

use crate::compile::{DROPPED, compile};
use crate::interpret::{FlowState, Packet, decide};
use crate::rule::{NetworkKind, RuleSet};
use crate::view::RuleView;

/// The first packet of a flow.
#[derive(Clone, Debug)]
pub struct Question {
    /// Source.
    pub from: IpAddr,
    /// Destination.
    pub to: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Destination port, or type of ICMP.
    pub port: u16,
    /// Interface that it comes in by. `None` derives it from the source.
    pub input: Option<String>,
    /// Interface that it leaves by. `None` derives it from the destination.
    pub output: Option<String>,
}

/// The fate of the packet, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// `true` if the packet passes.
    pub accepted: bool,
    /// One sentence.
    pub reason: String,
    /// The rule that decides. `None` if no rule does, and the packet is dropped.
    pub rule: Option<RuleView>,
    /// Interface that it comes in by.
    pub input: String,
    /// Interface that it leaves by.
    pub output: String,
    /// Rules that only log, and match before the deciding one.
    pub logged_by: Vec<String>,
}

/// Explains the rules' decision, by following the packet through the compiled table.
#[must_use]
pub fn explain(rules: &RuleSet, question: &Question) -> Explanation {
    let by_address = |address| interface_of(rules, address);
    let packet = Packet {
        source: question.from,
        destination: question.to,
        protocol: question.protocol,
        port: question.port,
        input: question
            .input
            .clone()
            .unwrap_or_else(|| by_address(question.from)),
        output: question
            .output
            .clone()
            .unwrap_or_else(|| by_address(question.to)),
        state: FlowState::New,
    };
    let decision = decide(&compile(rules), &packet);
    let mut counters = decision.counters;
    let last = counters.pop().unwrap_or_default();
    let rule = rules.rules().find(|rule| rule.id.counter() == last);
    let reason = match (rule, decision.accepted) {
        (Some(rule), true) => format!("{} accepts it", rule.id),
        (Some(rule), false) => format!("{} drops it", rule.id),
        (None, _) if last == DROPPED => "no rule accepts it".to_owned(),
        (None, _) => format!("it is counted by {last}"),
    };
    Explanation {
        accepted: decision.accepted,
        reason,
        rule: rule.map(RuleView::from),
        input: packet.input,
        output: packet.output,
        logged_by: counters,
    }
}

/// The first interface of the network with the longest prefix for an address; without one, of the
/// first external network.
fn interface_of(rules: &RuleSet, address: IpAddr) -> String {
    let networks = || {
        let all = rules.networks.iter();
        all.filter(|network| network.kind != NetworkKind::Underlay)
    };
    let longest = networks()
        .flat_map(|network| network.prefixes.iter().map(move |prefix| (prefix, network)))
        .filter(|(prefix, _)| prefix.contains(&address))
        .max_by_key(|(prefix, _)| prefix.prefix_len())
        .map(|(_, network)| network);
    let external = || networks().find(|network| network.kind == NetworkKind::External);
    longest
        .or_else(external)
        .and_then(|network| network.interfaces.first().cloned())
        .unwrap_or_default()
}
