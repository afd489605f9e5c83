use serde::Deserialize;
use serde_norway::Value;

use super::allowed::{AllowedNetworks, check};
use super::fqdns;
use super::names::name;
use super::parts::{addresses, protocols};
use super::problem::Fault;
use super::shapes::{RuleSpec, decode};
use super::{Admitted, Problem};
use crate::config::PolicyLists;
use crate::rule::{Action, Controller, Direction, NameSelector, Rule, RuleId};

/// A policy with rules of both directions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicySpec {
    name: String,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    ingress: Vec<RuleSpec>,
    #[serde(default)]
    egress: Vec<RuleSpec>,
}

/// Reads the tenant's policies.
pub(super) fn admit(lists: &PolicyLists, allowed: &AllowedNetworks, into: &mut Admitted) {
    let has_resolver = into.rules.resolver.is_some();
    for (direction, list) in [
        (Direction::Ingress, &lists.ingress),
        (Direction::Egress, &lists.egress),
    ] {
        for (index, value) in list.iter().enumerate() {
            match policy(value, index, direction, allowed, has_resolver) {
                Ok(rule) => into.rules.tenant.push(rule),
                Err(problem) => into.problems.push(problem),
            }
        }
    }
    admit_whole(&lists.policies, allowed, into);
}

/// Reads policies with rules of both directions.
fn admit_whole(list: &[Value], allowed: &AllowedNetworks, into: &mut Admitted) {
    let has_resolver = into.rules.resolver.is_some();
    for (index, value) in list.iter().enumerate() {
        match whole_policy(value, index, allowed, has_resolver) {
            Ok(rules) => into.rules.tenant.extend(rules),
            Err(problem) => into.problems.push(problem),
        }
    }
}

/// All rules of a policy, or the first problem of one of them.
fn whole_policy(
    value: &Value,
    index: usize,
    allowed: &AllowedNetworks,
    has_resolver: bool,
) -> Result<Vec<Rule>, Problem> {
    let unnamed = |fault: Fault| fault.of(format!("cwnp policies[{index}]"));
    let spec: PolicySpec = decode(value).map_err(unnamed)?;
    let own = name("name", &spec.name).map_err(unnamed)?;
    let mut rules = Vec::new();
    for (direction, list) in [
        (Direction::Ingress, &spec.ingress),
        (Direction::Egress, &spec.egress),
    ] {
        for (rule, spec) in list.iter().enumerate() {
            let id = RuleId {
                controller: Controller::Cwnp,
                object: format!("{}/{own}", direction.name()),
                rule,
            };
            let names = || fqdns::names(spec, direction, has_resolver);
            let build = || build(spec, id.clone(), direction, allowed, names()?);
            rules.push(build().map_err(|fault| fault.of_rule(&id))?);
        }
    }
    Ok(rules)
}

fn policy(
    value: &Value,
    index: usize,
    direction: Direction,
    allowed: &AllowedNetworks,
    has_resolver: bool,
) -> Result<Rule, Problem> {
    let list = direction.name();
    let unnamed = format!("cwnp {list}[{index}]");
    let spec: RuleSpec = decode(value).map_err(|fault| fault.of(unnamed.clone()))?;
    let default = format!("rule-{index}");
    let own = spec.name.as_deref().unwrap_or(&default);
    let own = name("name", own).map_err(|fault| fault.of(unnamed))?;
    let id = RuleId {
        controller: Controller::Cwnp,
        object: format!("{list}/{own}"),
        rule: 0,
    };
    let names = || fqdns::names(&spec, direction, has_resolver);
    let build = || build(&spec, id.clone(), direction, allowed, names()?);
    build().map_err(|fault| fault.of_rule(&id))
}

fn build(
    spec: &RuleSpec,
    id: RuleId,
    direction: Direction,
    allowed: &AllowedNetworks,
    names: Vec<NameSelector>,
) -> Result<Rule, Fault> {
    if spec.action.is_some_and(|action| action != Action::Accept) {
        let remedy = "remove it; sources.static.firewall.rules may deny";
        return Err(Fault::new(
            "action",
            "a policy of the tenant only accepts",
            remedy,
        ));
    }
    if spec.direction.is_some_and(|own| own != direction) {
        let problem = "it is not that of the list";
        return Err(Fault::new(
            "direction",
            problem,
            "remove it, or move the rule",
        ));
    }
    let sources = addresses("from", &spec.from)?;
    let destinations = addresses("to", &spec.to)?;
    match direction {
        Direction::Ingress => check("from", &sources, &allowed.ingress)?,
        // The addresses of names are checked when they are learned.
        _ if !names.is_empty() => {}
        _ => check("to", &destinations, &allowed.egress)?,
    }
    Ok(Rule {
        id,
        direction,
        sources,
        destinations,
        names,
        protocols: protocols("ports", &spec.ports)?,
        action: Action::Accept,
        log: spec.log,
    })
}

/// Reads a rule of the operator.
pub(super) fn operator(value: &Value, index: usize) -> Result<Rule, Problem> {
    let unnamed = format!("firewall rules[{index}]");
    let spec: RuleSpec = decode(value).map_err(|fault| fault.of(unnamed.clone()))?;
    let default = format!("rule-{index}");
    let own = spec.name.as_deref().unwrap_or(&default);
    let own = name("name", own).map_err(|fault| fault.of(unnamed))?;
    let id = RuleId {
        controller: Controller::Firewall,
        object: format!("rules/{own}"),
        rule: 0,
    };
    let build = || -> Result<Rule, Fault> {
        let Some(action) = spec.action else {
            let remedy = "add accept, drop or log";
            return Err(Fault::new("action", "it is missing", remedy));
        };
        if !spec.to_fqdns.is_empty() {
            let problem = "only policies of tenants have names";
            let remedy = "use `to` with prefixes, or a policy of cwnp.egress";
            return Err(Fault::new("toFQDNs", problem, remedy));
        }
        Ok(Rule {
            id: id.clone(),
            direction: spec.direction.unwrap_or_default(),
            sources: addresses("from", &spec.from)?,
            destinations: addresses("to", &spec.to)?,
            names: Vec::new(),
            protocols: protocols("ports", &spec.ports)?,
            action,
            log: spec.log,
        })
    };
    build().map_err(|fault| fault.of_rule(&id))
}
