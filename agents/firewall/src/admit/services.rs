use proto_firewall::{Violation, checked_service, service_name};
use serde_norway::Value;

use super::allowed::{AllowedNetworks, check};
use super::known::KnownObjects;
use super::object_list::ObjectList;
use super::prefix_budget::PrefixBudget;
use super::shapes::decode_service;
use super::typed::typed;
use super::{Admitted, Problem, SCOPE};
use crate::rule::{Controller, Rule, RuleId};

/// Reads the services.
pub(super) fn admit(
    list: &[Value],
    allowed: &AllowedNetworks,
    known: &mut KnownObjects,
    prefixes: &mut PrefixBudget,
    into: &mut Admitted,
) {
    let name = "service";
    known.admit(
        ObjectList { name, values: list },
        prefixes,
        |value, index| service(value, index, allowed).map(|rule| vec![rule]),
        |outcome| into.take_tenant(outcome),
    );
}

fn service(value: &Value, index: usize, allowed: &AllowedNetworks) -> Result<Rule, Problem> {
    let unnamed = |violation| Problem::new(format!("service [{index}]"), violation);
    let spec = decode_service(value).map_err(unnamed)?;
    let name = service_name(&spec, SCOPE).map_err(unnamed)?;
    let id = RuleId {
        controller: Controller::Service,
        object: name.clone(),
        rule: 0,
    };
    let build = || -> Result<Rule, Violation> {
        let rule = typed(id.clone(), checked_service(name, &spec, SCOPE)?);
        check("loadBalancerIPs", &rule.destinations, &allowed.ingress)?;
        Ok(rule)
    };
    build().map_err(|violation| Problem::of_rule(&id, violation))
}
