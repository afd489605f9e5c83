//! The rules as text for nft: for people, and for programs that read
//! `/etc/nftables/firewall-controller.v4`.
//!
//! The text has the same verdicts as the compiled table. Few rules are one nftables rule each, for
//! each family, destination and protocol; where there are more, rules with keys of one shape are the
//! elements of one set, as in the compiled table, because nft takes seconds to load thousands of
//! rules. nft can load the text; the agent replaces it by the compiled table then. Every text in it
//! is made from typed values, or is a name of few characters.

mod flows;
mod fragments;
mod lines;
mod sets;
mod sources;

use ipnet::IpNet;

use crate::compile::PINGS_PER_SECOND;
use crate::compile::access::{self, InputInterfaces};
use crate::compile::layers::{Layer, layers};
use crate::compile::source_rule::SourceCheck;
use crate::model::TABLE;
use crate::rule::prefixes::{is_ipv4, merged};
use crate::rule::{Direction, Network, NetworkKind, Rule, RuleSet};
use lines::rule_lines;

/// Most lines of a layer of rules. One with more is written as sets.
const LAYER_LINES_MAX: usize = 64;

/// Renders rules.
#[must_use]
pub fn render(rules: &RuleSet) -> String {
    let check = SourceCheck::forward(rules);
    let of_input = SourceCheck::input(rules);
    let mut text = format!(
        "# Written by metalmesh-firewall; changes are overwritten.\n\
         table inet {TABLE} {{\n{}{}{}{}{}{}  chain forward {{\n    \
         type filter hook forward priority 1; policy drop;\n",
        name_sets(rules),
        sources::spoofed(&check),
        sources::chain(&check),
        sources::spoofed(&of_input),
        sources::chain(&of_input),
        fragments::chains(rules),
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
    let flows = flows::forwarded(rules, &check);
    let others = sources::jump(&check).into_iter().chain([flows.unbound]);
    let contents = flows.known.into_iter().chain(others).chain(flows.first);
    for content in contents {
        line(&content);
    }
    let private: Vec<String> = private(rules)
        .flat_map(|network| network.interfaces.clone())
        .collect();
    for layer in layers(rules, "") {
        for content in layer_lines(&layer, &private) {
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
    let begun = flows::begun(rules);
    if !begun.is_empty() {
        text.push_str("  }\n  chain output {\n");
        text.push_str("    type filter hook output priority 1; policy accept;\n");
    }
    for content in begun {
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

/// The lines of a layer of rules.
fn layer_lines(layer: &Layer<'_>, private: &[String]) -> Vec<String> {
    let names = quoted(private);
    let direction = match layer.direction {
        Direction::Any => String::new(),
        // Without an interface no packet has the direction.
        _ if private.is_empty() => return Vec::new(),
        Direction::Ingress => format!("oifname {{ {names} }} "),
        Direction::Egress => format!("iifname {{ {names} }} "),
    };
    let of_rule = |rule: &&Rule| rule_lines(rule, layer.action);
    // One more than may be, and no more: there may be hundreds of thousands.
    let all = layer.rules.iter().flat_map(of_rule);
    let mut lines: Vec<String> = all.take(LAYER_LINES_MAX + 1).collect();
    if lines.len() > LAYER_LINES_MAX {
        lines = sets::layer_sets(layer);
    }
    lines
        .iter()
        .map(|line| format!("{direction}{line}"))
        .collect()
}

/// The rules for packets to the firewall itself.
fn input_lines(rules: &RuleSet) -> Vec<String> {
    let interfaces = InputInterfaces::of(rules);
    let from = |names: &[String]| format!("iifname {{ {} }} ", quoted(names));
    let mut lines = vec![
        "iifname \"lo\" counter accept".to_owned(),
        "ct state invalid counter drop".to_owned(),
    ];
    lines.extend(sources::jump(&SourceCheck::input(rules)));
    let flows = flows::received(rules);
    lines.extend(flows.known);
    lines.push(flows.unbound);
    lines.extend(flows.first);
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
        let all = rules.iter().flat_map(|rule| rule_lines(rule, rule.action));
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
    let all = managers
        .iter()
        .flat_map(|rule| rule_lines(rule, rule.action));
    lines.extend(all);
    lines.push("limit rate 10/second log prefix \"nftables-firewall-dropped: \"".to_owned());
    lines.push("counter drop".to_owned());
    lines
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
