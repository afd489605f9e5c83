use proto_firewall::{
    RuleList, RuleSpec, Violation, checked_operator_rule, checked_policy, parts, rule_name,
};
use serde::Deserialize;
use serde_norway::Value;

use super::admission::TenantObjects;
use super::allowed::{AllowedNetworks, check};
use super::object_list::ObjectList;
use super::prefix_budget::PrefixBudget;
use super::shapes::{RuleShape, decode, decode_rule};
use super::typed::typed;
use super::{Admitted, Problem, SCOPE, fqdns};
use crate::config::PolicyLists;
use crate::rule::{Controller, Direction, Rule, RuleId};

/// A policy with rules of both directions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicySpec {
    name: String,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    ingress: Vec<RuleShape>,
    #[serde(default)]
    egress: Vec<RuleShape>,
}

/// Limits that policies are checked against: the operator's part of the firewall.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PolicyLimits {
    pub(super) allowed: AllowedNetworks,
    pub(super) has_resolver: bool,
}

/// Reads the tenant's policies.
pub(super) fn admit(
    lists: &PolicyLists,
    limits: &PolicyLimits,
    known: &mut TenantObjects,
    prefixes: &mut PrefixBudget,
    into: &mut Admitted,
) {
    for (direction, name, values, known) in [
        (
            Direction::Ingress,
            "cwnp ingress",
            &lists.ingress,
            &mut known.ingress,
        ),
        (
            Direction::Egress,
            "cwnp egress",
            &lists.egress,
            &mut known.egress,
        ),
    ] {
        known.admit(
            ObjectList { name, values },
            prefixes,
            |value, index| policy(value, index, direction, limits).map(|rule| vec![rule]),
            |outcome| into.take_tenant(outcome),
        );
    }
    known.policies.admit(
        ObjectList {
            name: "cwnp policies",
            values: &lists.policies,
        },
        prefixes,
        |value, index| whole_policy(value, index, limits),
        |outcome| into.take_tenant(outcome),
    );
}

/// All rules of a policy, or the first problem of one of them.
fn whole_policy(value: &Value, index: usize, limits: &PolicyLimits) -> Result<Vec<Rule>, Problem> {
    let unnamed = |violation| Problem::new(format!("cwnp policies[{index}]"), violation);
    let spec: PolicySpec = decode(value).map_err(unnamed)?;
    let own = parts::name("name", &spec.name, parts::NAME_LEN_MAX).map_err(unnamed)?;
    let mut rules = Vec::new();
    // Also one policy alone must not fill the memory.
    let mut prefixes = PrefixBudget::default();
    for (direction, list) in [
        (Direction::Ingress, spec.ingress),
        (Direction::Egress, spec.egress),
    ] {
        let place = || format!("cwnp {}/{own}", direction.name());
        for (rule, spec) in list.into_iter().enumerate() {
            let spec: RuleSpec = spec.into();
            let read = || build(&spec, own.clone(), direction, rule, limits).map(|rule| vec![rule]);
            rules.extend(prefixes.bounded(place, read)?);
        }
    }
    Ok(rules)
}

fn policy(
    value: &Value,
    index: usize,
    direction: Direction,
    limits: &PolicyLimits,
) -> Result<Rule, Problem> {
    let list = direction.name();
    let unnamed = |violation| Problem::new(format!("cwnp {list}[{index}]"), violation);
    let spec = decode_rule(value).map_err(unnamed)?;
    let own = rule_name(&spec, index, SCOPE).map_err(unnamed)?;
    build(&spec, own, direction, 0, limits)
}

/// The rule of a policy.
fn build(
    spec: &RuleSpec,
    name: String,
    direction: Direction,
    rule: usize,
    limits: &PolicyLimits,
) -> Result<Rule, Problem> {
    let id = RuleId {
        controller: Controller::Cwnp,
        object: format!("{}/{name}", direction.name()),
        rule,
    };
    let list = match direction {
        Direction::Ingress => RuleList::Ingress,
        _ => RuleList::Egress,
    };
    let build = || -> Result<Rule, Violation> {
        let checked = checked_policy(name, spec, list, SCOPE)?;
        let names = fqdns::names(&checked.names, limits.has_resolver)?;
        let rule = Rule {
            names,
            log: spec.log,
            ..typed(id.clone(), checked)
        };
        match list {
            RuleList::Ingress => check("from", &rule.sources, &limits.allowed.ingress)?,
            // The addresses of names are checked when they are learned.
            _ if !rule.names.is_empty() => {}
            _ => check("to", &rule.destinations, &limits.allowed.egress)?,
        }
        Ok(rule)
    };
    build().map_err(|violation| Problem::of_rule(&id, violation))
}

/// Reads a rule of the operator.
pub(super) fn operator(value: &Value, index: usize) -> Result<Rule, Problem> {
    let unnamed = |violation| Problem::new(format!("firewall rules[{index}]"), violation);
    let spec = decode_rule(value).map_err(unnamed)?;
    let own = rule_name(&spec, index, SCOPE).map_err(unnamed)?;
    let id = RuleId {
        controller: Controller::Firewall,
        object: format!("rules/{own}"),
        rule: 0,
    };
    let checked = checked_operator_rule(own, &spec, SCOPE);
    let checked = checked.map_err(|violation| Problem::of_rule(&id, violation))?;
    Ok(Rule {
        log: spec.log,
        ..typed(id, checked)
    })
}
