use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;
use serde_norway::Value;

use super::allowed::{AllowedNetworks, check};
use super::names::{name, shortened};
use super::parts::{prefix, protocols};
use super::problem::Fault;
use super::shapes::{PortSpec, decode};
use super::{Admitted, Problem};
use crate::rule::prefixes::{any, merged};
use crate::rule::{Action, Controller, Direction, Rule, RuleId};

/// A service of Kubernetes, as far as a firewall needs it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ServiceSpec {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default, rename = "loadBalancerIPs")]
    load_balancer_ips: Vec<String>,
    #[serde(default)]
    load_balancer_source_ranges: Vec<String>,
    #[serde(default)]
    ports: Vec<PortSpec>,
}

/// Reads the services.
pub(super) fn admit(list: &[Value], allowed: &AllowedNetworks, into: &mut Admitted) {
    for (index, value) in list.iter().enumerate() {
        match service(value, index, allowed) {
            Ok(rule) => into.rules.tenant.push(rule),
            Err(problem) => into.problems.push(problem),
        }
    }
}

fn service(value: &Value, index: usize, allowed: &AllowedNetworks) -> Result<Rule, Problem> {
    let unnamed = |fault: Fault| fault.of(format!("service [{index}]"));
    let spec: ServiceSpec = decode(value).map_err(unnamed)?;
    let own = name("name", &spec.name).map_err(unnamed)?;
    let namespace = spec.namespace.as_deref().unwrap_or("default");
    let namespace = name("namespace", namespace).map_err(unnamed)?;
    let id = RuleId {
        controller: Controller::Service,
        object: format!("{namespace}/{own}"),
        rule: 0,
    };
    build(&spec, id.clone(), allowed).map_err(|fault| fault.of_rule(&id))
}

fn build(spec: &ServiceSpec, id: RuleId, allowed: &AllowedNetworks) -> Result<Rule, Fault> {
    if spec
        .kind
        .as_deref()
        .is_some_and(|kind| kind != "LoadBalancer")
    {
        let problem = "only services of type LoadBalancer are reached from outside";
        return Err(Fault::new("type", problem, "remove the service"));
    }
    // Without an address or a port the rule would be wider than the service.
    if spec.load_balancer_ips.is_empty() {
        let problem = "the service has no address";
        return Err(Fault::new("loadBalancerIPs", problem, "add its addresses"));
    }
    if spec.ports.is_empty() {
        return Err(Fault::new(
            "ports",
            "the service has no port",
            "add its ports",
        ));
    }
    if let Some(index) = spec.ports.iter().position(|port| port.port.is_none()) {
        let field = format!("ports[{index}].port");
        return Err(Fault::new(&field, "it is missing", "add the port"));
    }
    let mut destinations = Vec::new();
    for text in &spec.load_balancer_ips {
        let Ok(address) = text.parse::<IpAddr>() else {
            let problem = format!("{:?} is not an address", shortened(text));
            return Err(Fault::new(
                "loadBalancerIPs",
                &problem,
                "write it as 203.0.113.7",
            ));
        };
        destinations.push(IpNet::from(address));
    }
    check("loadBalancerIPs", &destinations, &allowed.ingress)?;
    let field = "loadBalancerSourceRanges";
    let ranges: Result<Vec<IpNet>, Fault> = spec
        .load_balancer_source_ranges
        .iter()
        .map(|text| prefix(field, text))
        .collect();
    let ranges = ranges?;
    Ok(Rule {
        id,
        direction: Direction::Ingress,
        sources: if ranges.is_empty() {
            any()
        } else {
            merged(&ranges)
        },
        destinations: merged(&destinations),
        names: Vec::new(),
        protocols: protocols("ports", &spec.ports)?,
        action: Action::Accept,
        log: false,
    })
}
