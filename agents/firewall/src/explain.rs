//! Which rule decides about a flow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Serialize;

use crate::compile::{DROPPED, SPOOFED, compile};
use crate::interpret::{FlowState, Packet, decide};
use crate::model::{Element, NftTable};
use crate::rule::{NameSelector, Network, NetworkKind, RuleSet};
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
    /// The name that the destination was resolved to for that rule. `None` without one.
    pub name: Option<String>,
    /// Rules that only log, and match before the deciding one.
    pub logged_by: Vec<String>,
}

/// Addresses by the set of a name that has them.
pub type Resolved = BTreeMap<String, BTreeSet<IpAddr>>;

/// Explains the rules' decision, by following the packet through the compiled table. Sets of names
/// have the addresses of `resolved`.
#[must_use]
pub fn explain(rules: &RuleSet, question: &Question, resolved: &Resolved) -> Explanation {
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
        mark: 0,
        is_reply: false,
        is_fragment: false,
    };
    let decision = decide(&with_addresses(compile(rules), resolved), &packet);
    let mut counters = decision.counters;
    let last = counters.pop().unwrap_or_default();
    let rule = rules.rules().find(|rule| rule.id.counter() == last);
    counters.retain(|name| rules.rules().any(|rule| rule.id.counter() == *name));
    let has_it = |name: &&NameSelector| {
        let set = resolved.get(&name.set(question.to.is_ipv4()));
        set.is_some_and(|addresses| addresses.contains(&question.to))
    };
    let name = rule.and_then(|rule| rule.names.iter().find(has_it));
    let reason = match (rule, decision.accepted) {
        (Some(rule), true) if name.is_some() => {
            let name = name.map(ToString::to_string).unwrap_or_default();
            format!("{} accepts it, because {name} was resolved to it", rule.id)
        }
        (Some(rule), true) => format!("{} accepts it", rule.id),
        (Some(rule), false) => format!("{} drops it", rule.id),
        (None, _) if last == SPOOFED => spoofed(rules, &packet),
        (None, _) if last == DROPPED => "no rule accepts it".to_owned(),
        (None, _) => format!("it is counted by {last}"),
    };
    Explanation {
        accepted: decision.accepted,
        reason,
        rule: rule.map(RuleView::from),
        input: packet.input,
        output: packet.output,
        name: name.map(ToString::to_string),
        logged_by: counters,
    }
}

/// The reason why a packet's source is not one of the network that it comes from.
fn spoofed(rules: &RuleSet, packet: &Packet) -> String {
    let (source, input) = (packet.source, &packet.input);
    let network_of = |interface: &String| {
        let mut networks = rules.networks.iter();
        networks.find(|network| network.interfaces.contains(interface))
    };
    let mut ends = [input, &packet.output].into_iter().filter_map(network_of);
    if let Some(closed) = ends.find(|network| network.kind == NetworkKind::Closed) {
        return format!("the network {} is closed: its object is wrong", closed.id);
    }
    let from = network_of(input).map_or_else(
        || format!("the interface {input}"),
        |network| format!("the network {} ({input})", network.id),
    );
    let owner = owner_of(rules, source).map_or_else(String::new, |owner| {
        format!(": it belongs to the network {}", owner.id)
    });
    format!("a packet with the source {source} does not come from {from}{owner}")
}

/// The table with resolved addresses in its sets of names.
#[must_use]
pub fn with_addresses(mut table: NftTable, resolved: &Resolved) -> NftTable {
    for (name, addresses) in resolved {
        if let Some(set) = table.sets.get_mut(name)
            && set.spec.has_timeout
        {
            let keys = addresses.iter().map(|address| match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            });
            set.elements.extend(keys.map(|key| (key, Element::Member)));
        }
    }
    table
}

/// The first interface of the network with the longest prefix for an address; without one, of the
/// first external network.
fn interface_of(rules: &RuleSet, address: IpAddr) -> String {
    let mut networks = rules.networks.iter();
    owner_of(rules, address)
        .or_else(|| networks.find(|network| network.kind == NetworkKind::External))
        .and_then(|network| network.interfaces.first().cloned())
        .unwrap_or_default()
}

/// The network with the longest prefix for an address.
fn owner_of(rules: &RuleSet, address: IpAddr) -> Option<&Network> {
    let networks = rules.networks.iter();
    networks
        .filter(|network| network.kind != NetworkKind::Underlay)
        .flat_map(|network| network.prefixes.iter().map(move |prefix| (prefix, network)))
        .filter(|(prefix, _)| prefix.contains(&address))
        .max_by_key(|(prefix, _)| prefix.prefix_len())
        .map(|(_, network)| network)
}
