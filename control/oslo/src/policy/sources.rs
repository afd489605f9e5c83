//! The check string that each rule has: the file's, or the registered one.

use std::collections::{HashMap, HashSet};

use super::rule::{PolicyRule, RuleOrigin};
use crate::expression::CheckExpression;
use crate::fault::PolicyFault;
use crate::file::PolicyFile;
use crate::registered::RegisteredRule;

/// The registered rules, then those that only the file has.
pub(super) fn rules(
    registered: &[&'static RegisteredRule],
    file: &PolicyFile,
) -> Result<Vec<PolicyRule>, PolicyFault> {
    let written: HashMap<&str, &CheckExpression> = file
        .rules()
        .iter()
        .map(|rule| (rule.name.as_str(), &rule.check))
        .collect();
    let mut rules = Vec::with_capacity(registered.len() + written.len());
    let mut known = HashSet::with_capacity(registered.len());
    for &rule in registered {
        let (check, origin) = source(rule, &written)?;
        rules.push(PolicyRule::new(rule.name, check, origin, Some(rule)));
        known.insert(rule.name);
    }
    let own = file.rules().iter();
    for rule in own.filter(|rule| !known.contains(rule.name.as_str())) {
        let check = rule.check.clone();
        rules.push(PolicyRule::new(&rule.name, check, RuleOrigin::File, None));
    }
    Ok(rules)
}

/// The check string of a registered rule, as oslo.policy 6.0.1 chooses it by its default settings:
/// defaults of earlier releases are not added to those of today (`enforce_new_defaults`).
fn source(
    rule: &RegisteredRule,
    written: &HashMap<&str, &CheckExpression>,
) -> Result<(CheckExpression, RuleOrigin), PolicyFault> {
    if let Some(check) = written.get(rule.name) {
        return Ok(((*check).clone(), RuleOrigin::File));
    }
    if let Some(old) = rule.old
        && old.name != rule.name
        && let Some(check) = written.get(old.name)
    {
        let is_alias = matches!(
            check,
            CheckExpression::Check(check) if check.rule() == Some(rule.name)
        );
        let before = parsed(old.name, old.check)?;
        if !is_alias && **check != before {
            return Ok(((*check).clone(), RuleOrigin::OldName(old.name)));
        }
    }
    Ok((parsed(rule.name, rule.check)?, RuleOrigin::Default))
}

fn parsed(name: &str, check: &str) -> Result<CheckExpression, PolicyFault> {
    check
        .parse::<CheckExpression>()
        .map_err(|fault| PolicyFault::of_check(name, &fault))
}
