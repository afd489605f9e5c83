//! Services of type `LoadBalancer`.

use ipnet::IpNet;

use super::parts::{NAME_LEN_MAX, NETWORK_NAME_LEN_MAX, address, name, prefix, protocols};
use crate::{CheckedRule, RuleList, RuleScope, ServiceSpec, Violation, prefixes};

/// Checks a service.
pub(super) fn service(spec: &ServiceSpec, scope: RuleScope<'_>) -> Result<CheckedRule, Violation> {
    let len_max = match scope.network {
        Some(_) => NETWORK_NAME_LEN_MAX,
        None => NAME_LEN_MAX,
    };
    let own = name("name", &spec.name, len_max)?;
    let namespace = spec.namespace.as_deref().unwrap_or("default");
    let namespace = name("namespace", namespace, NAME_LEN_MAX)?;
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
        name: format!("{namespace}/{own}"),
        action: "accept".to_owned(),
        is_ingress: true,
        is_egress: false,
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
