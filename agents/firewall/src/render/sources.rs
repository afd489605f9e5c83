//! The check of sources as chains.

use ipnet::IpNet;

use super::quoted;
use crate::compile::source_rule::{SourceCheck, SourceRule};
use crate::rule::prefixes::is_ipv4;

/// The chain that drops what checks refuse.
pub(super) fn spoofed(check: &SourceCheck) -> String {
    if check.rules.is_empty() {
        return String::new();
    }
    format!(
        "  chain {} {{\n    \
         limit rate 10/second log prefix \"nftables-firewall-dropped: \"\n    \
         counter drop\n  }}\n",
        check.spoofed
    )
}

/// The chain of a check.
pub(super) fn chain(check: &SourceCheck) -> String {
    if check.rules.is_empty() {
        return String::new();
    }
    let mut text = format!("  chain {} {{\n", check.name);
    for rule in &check.rules {
        for line in lines(rule, check.spoofed) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text.push_str("  }\n");
    text
}

/// The line that leads to a check.
pub(super) fn jump(check: &SourceCheck) -> Option<String> {
    let has_rules = !check.rules.is_empty();
    has_rules.then(|| format!("jump {}", check.name))
}

fn lines(rule: &SourceRule, spoofed: &str) -> Vec<String> {
    let mut interfaces = String::new();
    for (key, names) in [("iifname", &rule.inputs), ("oifname", &rule.outputs)] {
        if let Some(names) = names {
            interfaces += &format!("{key} {{ {} }} ", quoted(names));
        }
    }
    let end = if rule.is_spoofed {
        format!("jump {spoofed}")
    } else {
        "return".to_owned()
    };
    let Some(sources) = &rule.sources else {
        return vec![format!("{interfaces}{end}")];
    };
    let side = if rule.is_by_destination {
        "daddr"
    } else {
        "saddr"
    };
    let mut lines = Vec::new();
    for (family, name) in [(true, "ip"), (false, "ip6")] {
        let own = sources.iter().filter(|prefix| is_ipv4(prefix) == family);
        let own: Vec<String> = own.map(IpNet::to_string).collect();
        if !own.is_empty() {
            let list = own.join(", ");
            lines.push(format!("{interfaces}{name} {side} {{ {list} }} {end}"));
        }
    }
    lines
}
