//! The rules as text for nft: for people, and for programs that read
//! `/etc/nftables/firewall-controller.v4`.
//!
//! The text has the same verdicts as the compiled table, as one nftables rule for each rule and
//! family. nft can load it; the agent replaces it by the compiled table then. Every text in it is
//! made from typed values, or is a name of few characters.

use ipnet::IpNet;

use crate::compile::PINGS_PER_SECOND;
use crate::compile::access::{self, InputInterfaces};
use crate::model::TABLE;
use crate::rule::prefixes::{is_ipv4, merged};
use crate::rule::{Action, Direction, Network, NetworkKind, ProtocolMatch, Rule, RuleSet};
use crate::rule::{protocol_name, protocol_number};

/// Renders rules.
#[must_use]
pub fn render(rules: &RuleSet) -> String {
    let mut text = format!(
        "# Written by metalmesh-firewall; changes are overwritten.\n\
         table inet {TABLE} {{\n{}  chain forward {{\n    \
         type filter hook forward priority 1; policy drop;\n",
        name_sets(rules)
    );
    let mut line = |content: &str| text.push_str(&format!("    {content}\n"));
    for limit in &rules.rate_limits {
        if let Some(network) = rules.networks.iter().find(|net| net.id == limit.network) {
            let names = quoted(&network.interfaces);
            let rate = limit.mebibytes_per_second;
            line(&format!(
                "iifname {{ {names} }} limit rate over {rate} mbytes/second drop"
            ));
        }
    }
    line("ct state invalid counter drop");
    line("ct state established,related counter accept");
    let private: Vec<String> = private(rules)
        .flat_map(|network| network.interfaces.clone())
        .collect();
    let tenant = |direction| {
        let all = rules.tenant.iter();
        all.filter(move |rule| rule.direction == direction)
    };
    let ordered = rules
        .operator
        .iter()
        .chain(tenant(Direction::Ingress))
        .chain(tenant(Direction::Egress))
        .chain(tenant(Direction::Any));
    for rule in ordered {
        for content in rule_lines(rule, &private) {
            line(&content);
        }
    }
    line("limit rate 10/second log prefix \"nftables-firewall-dropped: \"");
    line("counter drop");
    text.push_str("  }\n  chain input {\n");
    text.push_str("    type filter hook input priority 1; policy drop;\n");
    for content in input_lines(rules) {
        text.push_str(&format!("    {content}\n"));
    }
    text.push_str("  }\n  chain postrouting {\n");
    text.push_str("    type nat hook postrouting priority 100; policy accept;\n");
    for content in nat_lines(rules) {
        text.push_str(&format!("    {content}\n"));
    }
    text.push_str("  }\n}\n");
    text
}

/// The sets of names, without what was learned.
fn name_sets(rules: &RuleSet) -> String {
    let mut text = String::new();
    for name in rules.selectors() {
        for (family, kind) in [(true, "ipv4_addr"), (false, "ipv6_addr")] {
            let set = name.set(family);
            text.push_str(&format!("  set {set} {{ type {kind}; flags timeout; }}\n"));
        }
    }
    text
}

fn private(rules: &RuleSet) -> impl Iterator<Item = &Network> {
    let all = rules.networks.iter();
    all.filter(|network| network.kind == NetworkKind::Private)
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn rule_lines(rule: &Rule, private: &[String]) -> Vec<String> {
    let names = quoted(private);
    let direction = match rule.direction {
        Direction::Any => String::new(),
        // Without an interface no packet has the direction.
        _ if private.is_empty() => return Vec::new(),
        Direction::Ingress => format!("oifname {{ {names} }} "),
        Direction::Egress => format!("iifname {{ {names} }} "),
    };
    let mut lines = Vec::new();
    for family in [true, false] {
        let Some(from) = addresses(&rule.sources, family, "saddr") else {
            continue;
        };
        let family_match = if family {
            "meta nfproto ipv4 "
        } else {
            "meta nfproto ipv6 "
        };
        let fitting = || rule.protocols.iter().filter(|own| own.fits(family));
        for to in destinations(rule, family) {
            for protocol in fitting() {
                let transport = protocol_text(*protocol);
                let matches = format!("{direction}{family_match}{from}{to}{transport}");
                lines.extend(decisions(rule, &matches));
            }
        }
    }
    lines
}

/// The matches of the destinations of a family: one for each name, or one for the prefixes.
fn destinations(rule: &Rule, family: bool) -> Vec<String> {
    let all = || addresses(&rule.destinations, family, "daddr");
    if rule.names.is_empty() {
        return all().into_iter().collect();
    }
    let kind = if family { "ip" } else { "ip6" };
    let names = rule.names.iter();
    names
        .map(|name| format!("{kind} daddr @{} ", name.set(family)))
        .collect()
}

/// The lines of a rule after its matches.
fn decisions(rule: &Rule, matches: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let prefix = if rule.action == Action::Drop {
        "dropped"
    } else {
        "accepted"
    };
    if rule.log || rule.action == Action::Log {
        lines.push(format!(
            "{matches}limit rate 10/second log prefix \"nftables-firewall-{prefix}: \""
        ));
    }
    if rule.action != Action::Log {
        let (action, comment) = (rule.action.name(), rule.id.counter());
        // A comment has at most 128 bytes.
        let comment: String = comment.chars().take(120).collect();
        lines.push(format!("{matches}counter {action} comment \"{comment}\""));
    }
    lines
}

/// The rules for packets to the firewall itself.
fn input_lines(rules: &RuleSet) -> Vec<String> {
    let interfaces = InputInterfaces::of(rules);
    let from = |names: &[String]| format!("iifname {{ {} }} ", quoted(names));
    let mut lines = vec![
        "iifname \"lo\" counter accept".to_owned(),
        "ct state invalid counter drop".to_owned(),
        "ct state established,related counter accept".to_owned(),
    ];
    for name in ["icmp", "icmpv6"] {
        lines.push(format!(
            "{name} type echo-request limit rate {PINGS_PER_SECOND}/second counter accept"
        ));
    }
    let mut group = |rules: &[Rule], names: Option<&[String]>| {
        // A list of no names matches nothing, and nft does not take it.
        if names.is_some_and(<[String]>::is_empty) {
            return;
        }
        let from = names.map(from).unwrap_or_default();
        let all = rules.iter().flat_map(|rule| rule_lines(rule, &[]));
        lines.extend(all.map(|line| format!("{from}{line}")));
    };
    group(&access::needed().rules, None);
    group(&access::underlay(rules).rules, Some(&interfaces.underlay));
    let management = access::management(rules).rules;
    group(&management, Some(&interfaces.management));
    group(&access::private(rules).rules, Some(&interfaces.private));
    if !interfaces.private.is_empty() {
        lines.push(format!("{}counter drop", from(&interfaces.private)));
    }
    let managers = access::managers(rules).rules;
    let all = managers.iter().flat_map(|rule| rule_lines(rule, &[]));
    lines.extend(all);
    lines.push("limit rate 10/second log prefix \"nftables-firewall-dropped: \"".to_owned());
    lines.push("counter drop".to_owned());
    lines
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

fn nat_lines(rules: &RuleSet) -> Vec<String> {
    let prefixes: Vec<IpNet> = private(rules)
        .flat_map(|network| network.prefixes.clone())
        .collect();
    let mut lines = Vec::new();
    for network in &rules.networks {
        for prefix in merged(&prefixes) {
            let family = is_ipv4(&prefix);
            let name = if family { "ip" } else { "ip6" };
            let all = network.nat_addresses.iter();
            let own: Vec<String> = all
                .filter(|address| address.is_ipv4() == family)
                .map(ToString::to_string)
                .collect();
            let to = match own.as_slice() {
                [] if network.masquerade => "masquerade".to_owned(),
                [] => continue,
                [one] => format!("snat {name} to {one}"),
                several => {
                    let numbered = (0..).zip(several);
                    let map: Vec<String> = numbered
                        .map(|(index, address)| format!("{index} : {address}"))
                        .collect();
                    let (count, map) = (several.len(), map.join(", "));
                    format!(
                        "snat {name} to jhash {name} saddr . {name} daddr mod {count} seed 0x1 map {{ {map} }}"
                    )
                }
            };
            let names = quoted(&network.interfaces);
            lines.push(format!(
                "{name} saddr {prefix} oifname {{ {names} }} counter {to}"
            ));
        }
    }
    lines
}
