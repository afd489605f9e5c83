//! Services of type `LoadBalancer`.

use ipnet::IpNet;

use super::name_len_max;
use crate::parts::{NAME_LEN_MAX, address, name, prefix, protocols};
use crate::{
    Action, CheckedRule, Direction, RuleList, RuleScope, ServiceSpec, Violation, prefixes,
};

/// The name of a service, with its namespace: `default/shop`.
///
/// # Errors
/// One of both is no name.
pub fn service_name(spec: &ServiceSpec, scope: RuleScope<'_>) -> Result<String, Violation> {
    let own = name("name", &spec.name, name_len_max(scope))?;
    let namespace = spec.namespace.as_deref().unwrap_or("default");
    let namespace = name("namespace", namespace, NAME_LEN_MAX)?;
    Ok(format!("{namespace}/{own}"))
}

/// Checks a service of that name.
///
/// # Errors
/// The first field that is wrong.
pub fn checked_service(name: String, spec: &ServiceSpec) -> Result<CheckedRule, Violation> {
    if spec
        .kind
        .as_deref()
        .is_some_and(|kind| kind != "LoadBalancer")
    {
        let problem = "only services of type LoadBalancer are reached from outside";
        return Err(Violation::new("type", problem, "remove the service"));
    }
    complete(spec)?;
    let addresses = spec.load_balancer_ips.iter();
    let destinations: Vec<IpNet> = addresses
        .map(|text| address("loadBalancerIPs", text).map(IpNet::from))
        .collect::<Result<_, _>>()?;
    let ranges = spec.load_balancer_source_ranges.iter();
    let ranges: Vec<IpNet> = ranges
        .map(|text| prefix("loadBalancerSourceRanges", text))
        .collect::<Result<_, _>>()?;
    let sources = match ranges.is_empty() {
        true => prefixes::any(),
        false => prefixes::merged(&ranges),
    };
    Ok(CheckedRule {
        list: RuleList::Service,
        name,
        action: Action::Accept,
        direction: Direction::Ingress,
        sources,
        destinations: Some(prefixes::merged(&destinations)),
        protocols: protocols("ports", &spec.ports)?,
    })
}

/// Refuses a service without an address or a port: its rule would be wider than the service.
fn complete(spec: &ServiceSpec) -> Result<(), Violation> {
    if spec.load_balancer_ips.is_empty() {
        let problem = "the service has no address";
        return Err(Violation::new(
            "loadBalancerIPs",
            problem,
            "add its addresses",
        ));
    }
    if spec.ports.is_empty() {
        return Err(Violation::new(
            "ports",
            "the service has no port",
            "add its ports",
        ));
    }
    if let Some(index) = spec.ports.iter().position(|port| port.port.is_none()) {
        let field = format!("ports[{index}].port");
        return Err(Violation::new(&field, "it is missing", "add the port"));
    }
    Ok(())
}
