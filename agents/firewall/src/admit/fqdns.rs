//! The names of policies.

use std::collections::BTreeSet;

use proto_firewall::{NamePattern, Violation};

use crate::rule::NameSelector;

/// The names of a policy that was checked, each once. One that cannot be read is an error: without
/// its names a policy would be for every address.
pub(super) fn names(
    patterns: &BTreeSet<NamePattern>,
    has_resolver: bool,
) -> Result<Vec<NameSelector>, Violation> {
    if !patterns.is_empty() && !has_resolver {
        let problem = "the firewall has no DNS proxy, which learns the addresses of names";
        let remedy = "set dnsServerAddress of the firewall (rules of control: dns_servers of its \
                      partition), or use `to`";
        return Err(Violation::new("toFQDNs", problem, remedy));
    }
    let found: Result<BTreeSet<NameSelector>, Violation> = patterns.iter().map(selector).collect();
    Ok(found?.into_iter().collect())
}

fn selector(pattern: &NamePattern) -> Result<NameSelector, Violation> {
    let found = match (&pattern.match_name, &pattern.match_pattern) {
        (Some(text), _) => NameSelector::name(text),
        (None, Some(text)) => NameSelector::pattern(text),
        (None, None) => None,
    };
    let remedy = "write it as api.example.com";
    found.ok_or_else(|| Violation::new("toFQDNs", "a name cannot be read", remedy))
}

#[cfg(test)]
mod tests {
    use proto_firewall::NamePattern;

    use super::names;

    #[test]
    fn a_policy_loses_none_of_its_names() {
        let pattern = |name: Option<&str>, pattern: Option<&str>| NamePattern {
            match_name: name.map(str::to_owned),
            match_pattern: pattern.map(str::to_owned),
        };
        let one = pattern(Some("api.example.com"), None);
        let all = [one.clone(), pattern(None, Some("*.example.com"))];
        assert_eq!(names(&all.into(), true).unwrap().len(), 2);
        for wrong in [
            pattern(None, None),
            pattern(Some("not a name"), None),
            pattern(None, Some("a..b")),
        ] {
            let all = [one.clone(), wrong.clone()];
            assert!(names(&all.into(), true).is_err(), "{wrong:?}");
        }
    }
}
