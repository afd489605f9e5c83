//! Destinations of policies by their names in the DNS.

use std::collections::BTreeSet;

use crate::parts::{DNS_NAME_LEN_MAX, dns_name, shortened};
use crate::{Direction, NamePattern, RuleSpec, Violation};

/// Names and patterns that one policy may have.
const NAMES_MAX: usize = 64;

/// Checks `toFQDNs` of a policy.
pub(super) fn check(spec: &RuleSpec, direction: Direction) -> Result<(), Violation> {
    let violation = |problem: &str, remedy: &str| Err(Violation::new("toFQDNs", problem, remedy));
    if spec.to_fqdns.is_empty() {
        return Ok(());
    }
    if direction != Direction::Egress {
        let remedy = "move the policy to cwnp.egress";
        return violation("only egress policies have names", remedy);
    }
    if !spec.to.is_empty() {
        let problem = "a policy has prefixes or names";
        return violation(problem, "remove `to`, or make two policies of it");
    }
    if spec.to_fqdns.len() > NAMES_MAX {
        let problem = format!("there are {} names", spec.to_fqdns.len());
        let remedy = format!("use at most {NAMES_MAX} in a policy, or a pattern");
        return violation(&problem, &remedy);
    }
    let mut all = spec.to_fqdns.iter().enumerate();
    all.try_for_each(|(index, name)| check_name(&format!("toFQDNs[{index}]"), name))
}

/// Names that [`check`] found right, each once: in small letters and without a dot at the end.
pub(super) fn normalized(names: &[NamePattern]) -> BTreeSet<NamePattern> {
    let own = |text: &Option<String>, has_stars| {
        let text = text.as_deref();
        text.and_then(|text| dns_name(text, has_stars))
    };
    let all = names.iter().map(|name| NamePattern {
        match_name: own(&name.match_name, false),
        match_pattern: own(&name.match_pattern, true),
    });
    all.collect()
}

fn check_name(field: &str, name: &NamePattern) -> Result<(), Violation> {
    let (field, text, has_stars) = match (&name.match_name, &name.match_pattern) {
        (Some(text), None) => (format!("{field}.matchName"), text, false),
        (None, Some(text)) => (format!("{field}.matchPattern"), text, true),
        _ => {
            let problem = "it needs either matchName or matchPattern";
            return Err(Violation::new(field, problem, "add one, or remove one"));
        }
    };
    if dns_name(text, has_stars).is_some() {
        return Ok(());
    }
    let problem = format!("{:?} is not a DNS name", shortened(text));
    let remedy = format!(
        "use labels of at most 63 letters, digits, `-` and `_`, together at most \
         {DNS_NAME_LEN_MAX}, and `*` only in matchPattern"
    );
    Err(Violation::new(&field, problem, &remedy))
}
