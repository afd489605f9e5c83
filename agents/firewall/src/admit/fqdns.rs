//! The names of policies.

use std::collections::BTreeSet;

use proto_firewall::{NamePattern, Violation};

use crate::rule::{NameSelector, Rule};

/// Different names and patterns that all policies together may have. A new flow costs a lookup for
/// each of them at most, and a DNS answer a comparison.
const NAMES_TOTAL_MAX: usize = 512;

/// The names of a policy that was checked, each once.
pub(super) fn names(
    patterns: &[NamePattern],
    has_resolver: bool,
) -> Result<Vec<NameSelector>, Violation> {
    if !patterns.is_empty() && !has_resolver {
        let problem = "the firewall has no DNS proxy, which learns the addresses of names";
        let remedy = "set dnsServerAddress of the firewall, or use `to`";
        return Err(Violation::new("toFQDNs", problem, remedy));
    }
    let read = |own: &NamePattern| match (&own.match_name, &own.match_pattern) {
        (Some(text), _) => NameSelector::name(text),
        (None, Some(text)) => NameSelector::pattern(text),
        (None, None) => None,
    };
    let found: BTreeSet<NameSelector> = patterns.iter().filter_map(read).collect();
    Ok(found.into_iter().collect())
}

/// The violation of a policy whose names are too many together with those of earlier ones, which are in
/// `seen`.
pub(super) fn too_many(rule: &Rule, seen: &mut BTreeSet<NameSelector>) -> Option<Violation> {
    let new = rule
        .names
        .iter()
        .filter(|name| !seen.contains(name))
        .count();
    if seen.len() + new > NAMES_TOTAL_MAX {
        let problem = format!("all policies together have more than {NAMES_TOTAL_MAX} names");
        let remedy = "use patterns, or fewer names";
        return Some(Violation::new("toFQDNs", problem, remedy));
    }
    seen.extend(rule.names.iter().cloned());
    None
}
