use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;
use serde_norway::Value;

use super::Admitted;
use super::allowed::AllowedNetworks;
use super::management::management;
use super::names::{interface, name, shortened};
use super::parts::prefix;
use super::policies::operator;
use super::problem::Fault;
use super::resolver;
use super::shapes::decode;
use crate::config::FirewallSpec;
use crate::rule::{Network, NetworkKind, RateLimit};

/// Largest rate limit, MiB/s: 4 GiB/s, the most that the kernel's burst can hold.
const RATE_MAX: u32 = 4095;

/// Reads networks, rate limits, source NAT and the operator's rules; returns what tenants may name.
pub(super) fn admit(spec: &FirewallSpec, into: &mut Admitted) -> AllowedNetworks {
    for (index, value) in spec.networks.iter().enumerate() {
        match network(value, &into.rules.networks) {
            Ok(network) => into.rules.networks.push(network),
            Err(fault) => into.refuse("networks", index, fault),
        }
    }
    for (index, value) in spec.egress_rules.iter().enumerate() {
        if let Err(fault) = egress_rule(value, &mut into.rules.networks) {
            into.refuse("egressRules", index, fault);
        }
    }
    for (index, value) in spec.rate_limits.iter().enumerate() {
        match rate_limit(value, &into.rules.networks) {
            Ok(limit) => into.rules.rate_limits.push(limit),
            Err(fault) => into.refuse("rateLimits", index, fault),
        }
    }
    for (index, value) in spec.rules.iter().enumerate() {
        match operator(value, index) {
            Ok(rule) => into.rules.operator.push(rule),
            Err(problem) => into.problems.push(problem),
        }
    }
    if let Some(value) = &spec.management {
        match management(value, &into.rules.networks) {
            Ok(policy) => into.rules.input = policy,
            // The policy without the object: nobody gets in by a mistake.
            Err(fault) => into
                .problems
                .push(fault.of("firewall management".to_owned())),
        }
    }
    match resolver::resolver(spec) {
        Ok(resolver) => into.rules.resolver = resolver,
        Err(fault) => into.problems.push(fault.of("firewall dns".to_owned())),
    }
    for (index, value) in spec.internal_prefixes.iter().enumerate() {
        let text = decode::<String>(value);
        match text.and_then(|text| prefix("internalPrefixes", &text)) {
            Ok(prefix) => into.rules.internal_prefixes.push(prefix),
            Err(fault) => into.refuse("internalPrefixes", index, fault),
        }
    }
    let allowed = allowed_networks(spec, into);
    into.rules.allowed_egress.clone_from(&allowed.egress);
    allowed
}

fn allowed_networks(spec: &FirewallSpec, into: &mut Admitted) -> AllowedNetworks {
    match spec.allowed_networks.as_ref().map(AllowedNetworks::decode) {
        None => AllowedNetworks::default(),
        Some(Ok(allowed)) => allowed,
        Some(Err(fault)) => {
            // Tenants must not get more because the operator's list has a mistake.
            into.problems
                .push(fault.of("firewall allowedNetworks".to_owned()));
            AllowedNetworks::nothing()
        }
    }
}

impl Admitted {
    fn refuse(&mut self, list: &str, index: usize, fault: Fault) {
        self.problems
            .push(fault.of(format!("firewall {list}[{index}]")));
    }
}

/// A network as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NetworkSpec {
    #[serde(rename = "networkID")]
    network_id: String,
    network_type: String,
    #[serde(default)]
    vrf: Option<u32>,
    #[serde(default)]
    interfaces: Vec<String>,
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    nat: bool,
}

fn network(value: &Value, others: &[Network]) -> Result<Network, Fault> {
    let spec: NetworkSpec = decode(value)?;
    let id = name("networkID", &spec.network_id)?;
    if others.iter().any(|other| other.id == id) {
        return Err(Fault::new(
            "networkID",
            "another network has it",
            "remove one of both",
        ));
    }
    let prefixes: Result<Vec<IpNet>, Fault> = spec
        .prefixes
        .iter()
        .map(|text| prefix("prefixes", text))
        .collect();
    Ok(Network {
        id,
        kind: network_kind(&spec.network_type)?,
        interfaces: interfaces(&spec, others)?,
        prefixes: prefixes?,
        nat_addresses: Vec::new(),
        masquerade: spec.nat,
    })
}

fn network_kind(text: &str) -> Result<NetworkKind, Fault> {
    match text {
        "external" => Ok(NetworkKind::External),
        "underlay" => Ok(NetworkKind::Underlay),
        "private"
        | "privateprimaryunshared"
        | "privateprimaryshared"
        | "privatesecondaryshared" => Ok(NetworkKind::Private),
        other => {
            let problem = format!("{:?} is not a type of networks", shortened(other));
            let remedy = "use private, external, underlay, or a published name of a private type";
            Err(Fault::new("networkType", &problem, remedy))
        }
    }
}

fn interfaces(spec: &NetworkSpec, others: &[Network]) -> Result<Vec<String>, Fault> {
    let mut all = spec
        .interfaces
        .iter()
        .map(|text| interface("interfaces", text))
        .collect::<Result<Vec<String>, Fault>>()?;
    if let (true, Some(vrf)) = (all.is_empty(), spec.vrf) {
        // A packet is seen at the VRF, at its bridge or at the port of its segment.
        all.extend(["vrf", "vlan", "vni"].map(|kind| format!("{kind}{vrf}")));
    }
    if all.is_empty() {
        let remedy = "add `vrf` or `interfaces`";
        return Err(Fault::new("vrf", "the network has no interface", remedy));
    }
    for own in &all {
        interface("vrf", own)?;
        if others.iter().any(|other| other.interfaces.contains(own)) {
            let problem = format!("the interface {own} belongs to another network");
            let remedy = "remove it from one of both";
            return Err(Fault::new("interfaces", &problem, remedy));
        }
    }
    Ok(all)
}

fn egress_rule(value: &Value, networks: &mut [Network]) -> Result<(), Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct EgressSpec {
        #[serde(rename = "networkID")]
        network_id: String,
        #[serde(default)]
        ips: Vec<String>,
    }
    let spec: EgressSpec = decode(value)?;
    let mut addresses = Vec::new();
    for text in &spec.ips {
        let Ok(address) = text.parse::<IpAddr>() else {
            let problem = format!("{:?} is not an address", shortened(text));
            return Err(Fault::new("ips", &problem, "write it as 203.0.113.7"));
        };
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err(Fault::new(
            "ips",
            "there is no address",
            "add one, or remove the rule",
        ));
    }
    let network = networks
        .iter_mut()
        .find(|network| network.id == spec.network_id);
    let network = network.ok_or_else(unknown_network)?;
    if network.kind != NetworkKind::External {
        let problem = "source NAT is for external networks";
        return Err(Fault::new("networkID", problem, "name an external network"));
    }
    network.nat_addresses.extend(addresses);
    network.nat_addresses.sort_unstable();
    network.nat_addresses.dedup();
    Ok(())
}

fn rate_limit(value: &Value, networks: &[Network]) -> Result<RateLimit, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RateSpec {
        #[serde(rename = "networkID")]
        network_id: String,
        rate: u32,
    }
    let spec: RateSpec = decode(value)?;
    if !networks.iter().any(|network| network.id == spec.network_id) {
        return Err(unknown_network());
    }
    if spec.rate == 0 || spec.rate > RATE_MAX {
        let problem = format!("{} is not a rate", spec.rate);
        return Err(Fault::new("rate", &problem, "use 1 to 4095, in MiB/s"));
    }
    Ok(RateLimit {
        network: spec.network_id,
        mebibytes_per_second: spec.rate,
    })
}

fn unknown_network() -> Fault {
    let remedy = "name a network of sources.static.firewall.networks";
    Fault::new("networkID", "there is no such network", remedy)
}
