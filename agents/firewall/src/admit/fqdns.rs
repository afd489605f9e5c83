//! The names of policies.

use std::collections::BTreeSet;

use proto_firewall::{NamePattern, Violation};

use crate::rule::NameSelector;

/// The names of a policy that was checked, each once.
pub(super) fn names(
    patterns: &[NamePattern],
    has_resolver: bool,
) -> Result<Vec<NameSelector>, Violation> {
    if !patterns.is_empty() && !has_resolver {
        let problem = "the firewall has no DNS proxy, which learns the addresses of names";
        let remedy = "set dnsServerAddress of the firewall (rules of control: dns_servers of its \
                      partition), or use `to`";
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
