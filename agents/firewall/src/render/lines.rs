//! Rules as lines.

use ipnet::IpNet;

use super::sets::named;
use crate::rule::prefixes::is_ipv4;
use crate::rule::{Action, ProtocolMatch, Rule, protocol_name, protocol_number};

/// The lines of a rule in a layer of that action, without its direction: one for each family,
/// destination and protocol.
pub(super) fn rule_lines(rule: &Rule, action: Action) -> Vec<String> {
    let mut lines = Vec::new();
    let decision = match action {
        Action::Log => log(rule.action == Action::Drop),
        _ => format!("counter {} comment \"{}\"", action.name(), comment(rule)),
    };
    for family in [true, false] {
        let Some(from) = addresses(&rule.sources, family, "saddr") else {
            continue;
        };
        let fitting = || rule.protocols.iter().filter(|own| own.fits(family));
        for to in destinations(rule, family) {
            for protocol in fitting() {
                let (family, transport) = (family_match(family), protocol_text(*protocol));
                lines.push(format!("{family}{from}{to}{transport}{decision}"));
            }
        }
    }
    lines
}

/// The match of a family.
pub(super) fn family_match(is_ipv4: bool) -> &'static str {
    if is_ipv4 {
        "meta nfproto ipv4 "
    } else {
        "meta nfproto ipv6 "
    }
}

/// The statements that log packets.
pub(super) fn log(is_dropped: bool) -> String {
    let prefix = if is_dropped { "dropped" } else { "accepted" };
    format!("limit rate 10/second log prefix \"nftables-firewall-{prefix}: \"")
}

/// The name of a rule as a comment, which has at most 128 bytes.
pub(super) fn comment(rule: &Rule) -> String {
    rule.id.counter().chars().take(120).collect()
}

/// The matches of the destinations of a family: one for each name, or one for the prefixes.
fn destinations(rule: &Rule, family: bool) -> Vec<String> {
    let all = || addresses(&rule.destinations, family, "daddr");
    if rule.names.is_empty() {
        return all().into_iter().collect();
    }
    let names = rule.names.iter();
    names.map(|name| named(name, family)).collect()
}

/// The match of the addresses of a family: nothing for all of them, `None` if there are none.
fn addresses(prefixes: &[IpNet], family: bool, field: &str) -> Option<String> {
    let own: Vec<&IpNet> = prefixes
        .iter()
        .filter(|net| is_ipv4(net) == family)
        .collect();
    let name = if family { "ip" } else { "ip6" };
    match own.as_slice() {
        [] => None,
        [all] if all.prefix_len() == 0 => Some(String::new()),
        [one] => Some(format!("{name} {field} {one} ")),
        several => {
            let list: Vec<String> = several.iter().map(ToString::to_string).collect();
            Some(format!("{name} {field} {{ {} }} ", list.join(", ")))
        }
    }
}

fn protocol_text(protocol: ProtocolMatch) -> String {
    match protocol {
        ProtocolMatch::Any => String::new(),
        ProtocolMatch::Protocol(number) => format!("meta l4proto {number} "),
        ProtocolMatch::Ports {
            protocol,
            first,
            last,
        } => format!("{} dport {first}-{last} ", protocol_name(protocol)),
        ProtocolMatch::IcmpType { protocol, kind } => {
            let name = if protocol == protocol_number::ICMP {
                "icmp"
            } else {
                "icmpv6"
            };
            format!("{name} type {kind} ")
        }
    }
}
