//! Rules as lines.

use ipnet::IpNet;

use super::sets::named;
use crate::rule::{Action, ProtocolMatch, Rule, protocol_name, protocol_number};

/// The lines of a rule in a layer of that action, without its direction: one for each family,
/// destination and protocol.
pub(super) fn rule_lines(rule: &Rule, action: Action) -> Vec<String> {
    let mut lines = Vec::new();
    let decision = match action {
        Action::Log => log(rule.action == Action::Drop),
        _ => format!("counter {} comment \"{}\"", action.name(), comment(rule)),
    };
    for is_ipv4 in [true, false] {
        let Some(from) = addresses(&rule.sources, is_ipv4, "saddr") else {
            continue;
        };
        let fitting = || rule.protocols.iter().filter(|own| own.fits(is_ipv4));
        for to in destinations(rule, is_ipv4) {
            for protocol in fitting() {
                let (family, transport) = (family_match(is_ipv4), protocol_text(*protocol));
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
fn destinations(rule: &Rule, is_ipv4: bool) -> Vec<String> {
    let all = || addresses(&rule.destinations, is_ipv4, "daddr");
    if rule.names.is_empty() {
        return all().into_iter().collect();
    }
    let names = rule.names.iter();
    names.map(|name| named(name, is_ipv4)).collect()
}

/// The match of the addresses of a family: nothing for all of them, `None` if there are none.
fn addresses(prefixes: &[IpNet], is_ipv4: bool, field: &str) -> Option<String> {
    let own: Vec<&IpNet> = prefixes
        .iter()
        .filter(|net| net.addr().is_ipv4() == is_ipv4)
        .collect();
    let name = if is_ipv4 { "ip" } else { "ip6" };
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
