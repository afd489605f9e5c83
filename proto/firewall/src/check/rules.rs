//! Rules of operators, and policies of tenants.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::{name_len_max, names};
use crate::address_range::{self, AddressRange};
use crate::parts::{merged, name, protocols, ranges, shortened};
use crate::ranged_rule::RangedRule;
use crate::{Action, CheckedRule, Direction, RuleList, RuleScope, RuleSpec, Violation, prefixes};

/// The name of a rule; one without a name has that of its place in its list.
///
/// # Errors
/// It is no name.
pub fn rule_name(spec: &RuleSpec, index: usize, scope: RuleScope<'_>) -> Result<String, Violation> {
    if spec.name.is_empty() {
        return Ok(RuleSpec::name_of_place(index));
    }
    name("name", &spec.name, name_len_max(scope))
}

/// Checks a rule of an operator of that name.
///
/// # Errors
/// The first field that is wrong.
pub fn checked_operator_rule(
    name: String,
    spec: &RuleSpec,
    scope: RuleScope<'_>,
) -> Result<CheckedRule, Violation> {
    ranged_operator_rule(name, spec, scope).map(RangedRule::into_checked)
}

/// As [`checked_operator_rule`], without making the prefixes.
pub(super) fn ranged_operator_rule(
    name: String,
    spec: &RuleSpec,
    scope: RuleScope<'_>,
) -> Result<RangedRule, Violation> {
    let action = action(spec)?;
    let direction = direction(spec, scope)?;
    if !spec.to_fqdns.is_empty() {
        let remedy = "use `to` with prefixes; egress policies have names";
        let problem = "rules of operators have no names";
        return Err(Violation::new("toFQDNs", problem, remedy));
    }
    let protocols = protocols("ports", &spec.ports)?;
    let ends = RuleEnds::of(spec, scope, direction)?;
    Ok(RangedRule {
        list: RuleList::Operator,
        name,
        action,
        direction,
        sources: ends.sources,
        destinations: Some(ends.destinations),
        names: BTreeSet::new(),
        protocols,
    })
}

fn action(spec: &RuleSpec) -> Result<Action, Violation> {
    match spec.action.as_deref() {
        Some("accept") => Ok(Action::Accept),
        Some("drop") => Ok(Action::Drop),
        Some("log") => Ok(Action::Log),
        Some(other) => {
            let problem = format!("{:?} is not an action", shortened(other));
            Err(Violation::new("action", problem, "use accept, drop or log"))
        }
        None => {
            let remedy = "add accept, drop or log";
            Err(Violation::new("action", "it is missing", remedy))
        }
    }
}

fn direction(spec: &RuleSpec, scope: RuleScope<'_>) -> Result<Direction, Violation> {
    match spec.direction.as_deref() {
        Some("ingress") => Ok(Direction::Ingress),
        Some("egress") => Ok(Direction::Egress),
        None | Some("any") if scope.network.is_none() => Ok(Direction::Any),
        None | Some("any") => {
            let problem = "a rule of a network has one direction";
            let remedy = "use ingress or egress";
            Err(Violation::new("direction", problem, remedy))
        }
        Some(other) => {
            let problem = format!("{:?} is not a direction", shortened(other));
            let remedy = "use ingress, egress or any";
            Err(Violation::new("direction", problem, remedy))
        }
    }
}

/// Checks a policy of the list `list` of that name.
///
/// # Errors
/// The first field that is wrong.
pub fn checked_policy(
    name: String,
    spec: &RuleSpec,
    list: RuleList,
    scope: RuleScope<'_>,
) -> Result<CheckedRule, Violation> {
    ranged_policy(name, spec, list, scope).map(RangedRule::into_checked)
}

/// As [`checked_policy`], without making the prefixes.
pub(crate) fn ranged_policy(
    name: String,
    spec: &RuleSpec,
    list: RuleList,
    scope: RuleScope<'_>,
) -> Result<RangedRule, Violation> {
    let direction = match list {
        RuleList::Ingress => Direction::Ingress,
        _ => Direction::Egress,
    };
    let other = |own: &Option<String>, wanted: &str| own.as_ref().is_some_and(|own| own != wanted);
    if other(&spec.action, Action::Accept.name()) {
        let remedy = "remove it; rules of operators may deny";
        return Err(Violation::new("action", "a policy only accepts", remedy));
    }
    if other(&spec.direction, direction.name()) {
        let problem = "it is not that of the list";
        let remedy = "remove it, or move the policy";
        return Err(Violation::new("direction", problem, remedy));
    }
    names::check(spec, direction)?;
    let protocols = protocols("ports", &spec.ports)?;
    let ends = RuleEnds::of(spec, scope, direction)?;
    Ok(RangedRule {
        list,
        name,
        action: Action::Accept,
        direction,
        sources: ends.sources,
        destinations: spec.to_fqdns.is_empty().then_some(ends.destinations),
        names: names::normalized(&spec.to_fqdns),
        protocols,
    })
}

/// Sources and destinations of a rule.
struct RuleEnds {
    sources: Vec<AddressRange>,
    destinations: Vec<AddressRange>,
}

impl RuleEnds {
    fn of(spec: &RuleSpec, scope: RuleScope<'_>, direction: Direction) -> Result<Self, Violation> {
        let mut sources = ranges("from", &spec.from)?;
        let mut destinations = ranges("to", &spec.to)?;
        if let Some(network) = scope.network {
            let (field, blocks, inner) = match direction {
                Direction::Ingress => ("to", &spec.to, &mut destinations),
                _ => ("from", &spec.from, &mut sources),
            };
            if blocks.is_empty() {
                *inner = merged(field, network)?;
            }
            inside(field, inner, network)?;
        }
        Ok(Self {
            sources,
            destinations,
        })
    }
}

/// Refuses addresses of other networks in the rules of a network.
pub(super) fn inside(
    field: &str,
    named: &[AddressRange],
    network: &[IpNet],
) -> Result<(), Violation> {
    let Some(outside) = address_range::outside(named, network) else {
        return Ok(());
    };
    let network = prefixes::merged(network);
    let all: Vec<String> = network.iter().map(ToString::to_string).collect();
    let remedy = format!(
        "name prefixes in {}, leave it out for all of them, or attach the rule to the firewall",
        all.join(", ")
    );
    let problem = format!("{outside} is outside of the network");
    Err(Violation::new(field, problem, &remedy))
}
