//! The names of a policy.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::names::shortened;
use super::problem::Fault;
use super::shapes::RuleSpec;
use crate::rule::{Direction, NameSelector, Rule};

/// Names and patterns that one policy may have.
const NAMES_MAX: usize = 64;
/// Different names and patterns that all policies together may have. A new flow costs a lookup for
/// each of them at most, and a DNS answer a comparison.
const NAMES_TOTAL_MAX: usize = 512;

/// DNS names that a policy is for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct FqdnSpec {
    #[serde(default)]
    pub(super) match_name: Option<String>,
    #[serde(default)]
    pub(super) match_pattern: Option<String>,
}

/// Reads `toFQDNs`.
pub(super) fn names(
    spec: &RuleSpec,
    direction: Direction,
    has_resolver: bool,
) -> Result<Vec<NameSelector>, Fault> {
    let fault = |problem: &str, remedy: &str| Err(Fault::new("toFQDNs", problem, remedy));
    if spec.to_fqdns.is_empty() {
        return Ok(Vec::new());
    }
    if direction != Direction::Egress {
        let remedy = "move the policy to cwnp.egress";
        return fault("only egress policies have names", remedy);
    }
    if !spec.to.is_empty() {
        let problem = "a policy has prefixes or names";
        return fault(problem, "remove `to`, or make two policies of it");
    }
    if !has_resolver {
        let problem = "the firewall has no DNS proxy, which learns the addresses of names";
        return fault(problem, "set dnsServerAddress of the firewall, or use `to`");
    }
    if spec.to_fqdns.len() > NAMES_MAX {
        let problem = format!("there are {} names", spec.to_fqdns.len());
        let remedy = format!("use at most {NAMES_MAX} in a policy, or a pattern");
        return fault(&problem, &remedy);
    }
    let mut found = BTreeSet::new();
    for (index, own) in spec.to_fqdns.iter().enumerate() {
        let field = format!("toFQDNs[{index}]");
        let (field, text, read) = match (&own.match_name, &own.match_pattern) {
            (Some(text), None) => (format!("{field}.matchName"), text, NameSelector::name(text)),
            (None, Some(text)) => {
                let field = format!("{field}.matchPattern");
                (field, text, NameSelector::pattern(text))
            }
            _ => {
                let problem = "it needs either matchName or matchPattern";
                return Err(Fault::new(&field, problem, "add one, or remove one"));
            }
        };
        let Some(name) = read else {
            let problem = format!("{:?} is not a DNS name", shortened(text));
            let remedy = "use labels of at most 63 letters, digits, `-` and `_`, together at most \
                          240, and `*` only in matchPattern";
            return Err(Fault::new(&field, &problem, remedy));
        };
        found.insert(name);
    }
    Ok(found.into_iter().collect())
}

/// The fault of a policy whose names are too many together with those of earlier ones, which are in
/// `seen`.
pub(super) fn too_many(rule: &Rule, seen: &mut BTreeSet<NameSelector>) -> Option<Fault> {
    let new = rule
        .names
        .iter()
        .filter(|name| !seen.contains(name))
        .count();
    if seen.len() + new > NAMES_TOTAL_MAX {
        let problem = format!("all policies together have more than {NAMES_TOTAL_MAX} names");
        return Some(Fault::new(
            "toFQDNs",
            &problem,
            "use patterns, or fewer names",
        ));
    }
    seen.extend(rule.names.iter().cloned());
    None
}
