//! The one validator: each object on its own, with field, problem and remedy.

mod names;
mod network_objects;
mod rules;
mod services;

use std::collections::BTreeSet;

#[cfg(test)]
pub(crate) use rules::ranged_policy;
pub use rules::{checked_operator_rule, checked_policy, rule_name};
pub use services::{checked_service, service_name};

use crate::budget::PREFIXES_TOTAL_MAX;
use crate::parts::{NAME_LEN_MAX, NETWORK_NAME_LEN_MAX};
use crate::ranged_rule::RangedRule;
use crate::{
    CheckedRule, RuleBudget, RuleContent, RuleList, RuleOwner, RuleScope, RuleShare, RuleSpec,
    ServiceSpec, SetSize, Violation,
};

/// Every object that is wrong, or does not fit the share of the set's owner. Empty means that the
/// content may be stored, as far as it alone decides that.
#[must_use]
pub fn check(content: &RuleContent, scope: RuleScope<'_>) -> Vec<Violation> {
    let mut wrong = network_objects::check(content, scope);
    let mut budget = RuleBudget::of(RuleShare::of(scope.owner));
    wrong.extend(ranged_after(content, scope, &mut budget).1);
    wrong
}

/// The rules that are right, in the order in which a firewall asks them, and the objects that are
/// not.
#[must_use]
pub fn checked(content: &RuleContent, scope: RuleScope<'_>) -> (Vec<CheckedRule>, Vec<Violation>) {
    let mut budget = RuleBudget::of(RuleShare::of(scope.owner));
    checked_after(content, scope, &mut budget)
}

/// The need of the rules that are right.
#[must_use]
pub fn set_size(content: &RuleContent, scope: RuleScope<'_>) -> SetSize {
    let mut budget = RuleBudget::of(RuleShare::ENDLESS);
    ranged_after(content, scope, &mut budget);
    SetSize {
        entries: budget.entries,
        names: budget.names,
    }
}

/// As [`checked`], for one of several sets of a firewall; `budget` has what those before it took.
pub fn checked_after(
    content: &RuleContent,
    scope: RuleScope<'_>,
    budget: &mut RuleBudget,
) -> (Vec<CheckedRule>, Vec<Violation>) {
    let (rules, wrong) = ranged_after(content, scope, budget);
    let rules = rules.into_iter().map(RangedRule::into_checked);
    (rules.collect(), wrong)
}

/// As [`checked_after`], without making the prefixes.
fn ranged_after(
    content: &RuleContent,
    scope: RuleScope<'_>,
    budget: &mut RuleBudget,
) -> (Vec<RangedRule>, Vec<Violation>) {
    let mut found = Checked {
        rules: Vec::new(),
        wrong: Vec::new(),
        names: BTreeSet::new(),
        prefixes: 0,
        budget,
    };
    for (index, spec) in content.operator_rules.iter().enumerate() {
        let object = object("firewall rules", &spec.name, index);
        found.take(&object, || operator_rule(spec, index, scope));
    }
    for (list, name, specs) in [
        (RuleList::Egress, "cwnp egress", &content.egress_policies),
        (RuleList::Ingress, "cwnp ingress", &content.ingress_policies),
    ] {
        for (index, spec) in specs.iter().enumerate() {
            let object = object(name, &spec.name, index);
            found.take(&object, || policy(spec, index, list, scope));
        }
    }
    for (index, spec) in content.load_balancers.iter().enumerate() {
        let object = object("service", &spec.name, index);
        found.take(&object, || service(spec, scope));
    }
    (found.rules, found.wrong)
}

fn operator_rule(
    spec: &RuleSpec,
    index: usize,
    scope: RuleScope<'_>,
) -> Result<RangedRule, Violation> {
    operators_only("rules", scope)?;
    rules::ranged_operator_rule(rule_name(spec, index, scope)?, spec, scope)
}

fn policy(
    spec: &RuleSpec,
    index: usize,
    list: RuleList,
    scope: RuleScope<'_>,
) -> Result<RangedRule, Violation> {
    rules::ranged_policy(rule_name(spec, index, scope)?, spec, list, scope)
}

fn service(spec: &ServiceSpec, scope: RuleScope<'_>) -> Result<RangedRule, Violation> {
    services::ranged_service(service_name(spec, scope)?, spec, scope)
}

/// Longest name of an object in a set.
fn name_len_max(scope: RuleScope<'_>) -> usize {
    match scope.network {
        Some(_) => NETWORK_NAME_LEN_MAX,
        None => NAME_LEN_MAX,
    }
}

/// The name of an object in messages: its list, and its name or its place.
fn object(list: &str, name: &str, index: usize) -> String {
    if name.is_empty() {
        return format!("{list}[{index}]");
    }
    let short: String = name.chars().take(NAME_LEN_MAX).collect();
    format!("{list}/{short}")
}

/// Rules and violations that were found so far.
struct Checked<'a> {
    rules: Vec<RangedRule>,
    wrong: Vec<Violation>,
    names: BTreeSet<(RuleList, String)>,
    /// Prefixes of the objects so far, also of those that are beyond the budget.
    prefixes: usize,
    budget: &'a mut RuleBudget,
}

impl Checked<'_> {
    /// Takes an object, unless those before it have used up the set's prefixes: then it is not even
    /// read.
    fn take(&mut self, object: &str, rule: impl FnOnce() -> Result<RangedRule, Violation>) {
        match self.bounded(rule) {
            Ok(rule) => self.rules.push(rule),
            Err(wrong) => self.wrong.push(wrong.of(object)),
        }
    }

    fn bounded(
        &mut self,
        rule: impl FnOnce() -> Result<RangedRule, Violation>,
    ) -> Result<RangedRule, Violation> {
        if self.prefixes > PREFIXES_TOTAL_MAX {
            let problem =
                format!("the objects before it need more than {PREFIXES_TOTAL_MAX} prefixes");
            let remedy = "use fewer or shorter exceptions, or fewer prefixes";
            return Err(Violation::new("the set", problem, remedy));
        }
        let rule = rule()?;
        self.prefixes += rule.prefixes();
        if !self.names.insert((rule.list, rule.name.clone())) {
            let problem = "another object of the list has the same name";
            return Err(Violation::new("name", problem, "rename one of them"));
        }
        self.budget.take(rule.entries(), rule.names.iter())?;
        Ok(rule)
    }
}

/// Refuses what only operators may have.
fn operators_only(field: &str, scope: RuleScope<'_>) -> Result<(), Violation> {
    match scope.owner {
        RuleOwner::Operator => Ok(()),
        RuleOwner::Tenant => Err(Violation::new(
            field,
            "only the operator may have it",
            "remove it; policies (`cwnp`) and services are the project's",
        )),
    }
}

/// Refuses what only the rules of a firewall may have.
fn firewalls_only(field: &str, scope: RuleScope<'_>) -> Result<(), Violation> {
    match scope.network {
        None => Ok(()),
        Some(_) => Err(Violation::new(
            field,
            "rules of a network cannot have it",
            "attach it to the firewall",
        )),
    }
}
