//! Services of type `LoadBalancer`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::name_len_max;
use super::rules::inside;
use crate::address_range::every_address;
use crate::parts::{NAME_LEN_MAX, address, merged, name, prefix, protocols};
use crate::ranged_rule::RangedRule;
use crate::{Action, CheckedRule, Direction, RuleList, RuleScope, ServiceSpec, Violation};

/// The address of all hosts of a segment.
const BROADCAST: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);

/// The name of a service, with its namespace: `default/shop`.
///
/// # Errors
/// One of both is no name.
pub fn service_name(spec: &ServiceSpec, scope: RuleScope<'_>) -> Result<String, Violation> {
    let own = name("name", &spec.name, name_len_max(scope))?;
    let namespace = spec.namespace();
    let namespace = name("namespace", namespace, NAME_LEN_MAX)?;
    Ok(format!("{namespace}/{own}"))
}

/// Checks a service of that name.
///
/// # Errors
/// The first field that is wrong.
pub fn checked_service(
    name: String,
    spec: &ServiceSpec,
    scope: RuleScope<'_>,
) -> Result<CheckedRule, Violation> {
    ranged_service(name, spec, scope).map(RangedRule::into_checked)
}

/// As [`checked_service`], without making the prefixes.
pub(super) fn ranged_service(
    name: String,
    spec: &ServiceSpec,
    scope: RuleScope<'_>,
) -> Result<RangedRule, Violation> {
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
        .map(|text| service_address(text).map(IpNet::from))
        .collect::<Result<_, _>>()?;
    let field = "loadBalancerIPs";
    let destinations = merged(field, &destinations)?;
    if let Some(network) = scope.network {
        inside(field, &destinations, network)?;
    }
    let ranges = spec.load_balancer_source_ranges.iter();
    let ranges: Vec<IpNet> = ranges
        .map(|text| prefix("loadBalancerSourceRanges", text))
        .collect::<Result<_, _>>()?;
    let sources = match ranges.is_empty() {
        true => every_address(),
        false => merged("loadBalancerSourceRanges", &ranges)?,
    };
    let protocols = protocols("ports", &spec.ports)?;
    Ok(RangedRule {
        list: RuleList::Service,
        name,
        action: Action::Accept,
        direction: Direction::Ingress,
        sources,
        destinations: Some(destinations),
        names: BTreeSet::new(),
        protocols,
    })
}

/// An address that packets of others may have as their destination.
fn service_address(text: &str) -> Result<IpAddr, Violation> {
    let found = address("loadBalancerIPs", text)?;
    let own = found.to_canonical();
    if own.is_loopback() || own.is_unspecified() || own.is_multicast() || own == BROADCAST {
        let problem = format!("{found} is no address of a service");
        let remedy = "name an address that its clients reach";
        return Err(Violation::new("loadBalancerIPs", problem, remedy));
    }
    Ok(found)
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
