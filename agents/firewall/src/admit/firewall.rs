use ipnet::IpNet;
use proto_firewall::Violation;
use proto_firewall::parts::{self, NAME_LEN_MAX, prefix, shortened};
use serde::Deserialize;
use serde_norway::Value;

use super::allowed::AllowedNetworks;
use super::known::KnownObjects;
use super::management::management;
use super::names::interface;
use super::object_list::ObjectList;
use super::policies::operator;
use super::prefix_budget::PrefixBudget;
use super::refused_network::refused_network;
use super::resolver;
use super::shapes::decode;
use super::{Admitted, Problem};
use crate::config::FirewallSpec;
use crate::rule::{Network, NetworkKind, RateLimit};

/// Reads networks, rate limits, source NAT and the operator's rules; returns what tenants may name.
pub(super) fn admit(
    spec: &FirewallSpec,
    known: &mut KnownObjects,
    prefixes: &mut PrefixBudget,
    into: &mut Admitted,
) -> AllowedNetworks {
    networks(spec, into);
    for (index, value) in spec.egress_rules.iter().enumerate() {
        if let Err(violation) = egress_rule(value, &mut into.rules.networks) {
            into.refuse("egressRules", index, violation);
        }
    }
    for (index, value) in spec.rate_limits.iter().enumerate() {
        match rate_limit(value, &into.rules.networks) {
            Ok(limit) => into.rules.rate_limits.push(limit),
            Err(violation) => into.refuse("rateLimits", index, violation),
        }
    }
    known.admit(
        ObjectList {
            name: "firewall rules",
            values: &spec.rules,
        },
        prefixes,
        |value, index| operator(value, index).map(|rule| vec![rule]),
        |outcome| match outcome {
            Ok(rules) => into.rules.operator.extend(rules),
            Err(problem) => into.problems.push(problem),
        },
    );
    if let Some(value) = &spec.management {
        match management(value, &into.rules.networks) {
            Ok(policy) => into.rules.input = policy,
            // The policy without the object: nobody gets in by a mistake.
            Err(violation) => into
                .problems
                .push(Problem::new("firewall management", violation)),
        }
    }
    match resolver::resolver(spec) {
        Ok(resolver) => into.rules.resolver = resolver,
        Err(violation) => into.problems.push(Problem::new("firewall dns", violation)),
    }
    internal_prefixes(spec, into);
    let allowed = allowed_networks(spec, into);
    into.rules.allowed_egress.clone_from(&allowed.egress);
    allowed
}

/// Reads the networks. Those that are wrong come last: an interface is that of a network that is right.
fn networks(spec: &FirewallSpec, into: &mut Admitted) {
    let mut refused = Vec::new();
    for (index, value) in spec.networks.iter().enumerate() {
        match network(value, &into.rules.networks) {
            Ok(network) => into.rules.networks.push(network),
            Err(violation) => {
                into.refuse("networks", index, violation);
                refused.push((index, value));
            }
        }
    }
    for (index, value) in refused {
        let network = refused_network(value, index, &into.rules.networks);
        into.rules.networks.extend(network);
    }
}

fn internal_prefixes(spec: &FirewallSpec, into: &mut Admitted) {
    for (index, value) in spec.internal_prefixes.iter().enumerate() {
        let text = decode::<String>(value);
        match text.and_then(|text| prefix("internalPrefixes", &text)) {
            Ok(prefix) => into.rules.internal_prefixes.push(prefix),
            Err(violation) => into.refuse("internalPrefixes", index, violation),
        }
    }
}

fn allowed_networks(spec: &FirewallSpec, into: &mut Admitted) -> AllowedNetworks {
    match spec.allowed_networks.as_ref().map(AllowedNetworks::decode) {
        None => AllowedNetworks::default(),
        Some(Ok(allowed)) => allowed,
        Some(Err(violation)) => {
            // Tenants must not get more because the operator's list has a mistake.
            into.problems
                .push(Problem::new("firewall allowedNetworks", violation));
            AllowedNetworks::nothing()
        }
    }
}

impl Admitted {
    fn refuse(&mut self, list: &str, index: usize, violation: Violation) {
        self.problems
            .push(Problem::new(format!("firewall {list}[{index}]"), violation));
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
    addresses: Option<Vec<String>>,
    #[serde(default)]
    nat: bool,
}

fn network(value: &Value, others: &[Network]) -> Result<Network, Violation> {
    let spec: NetworkSpec = decode(value)?;
    let id = parts::name("networkID", &spec.network_id, NAME_LEN_MAX)?;
    if others.iter().any(|other| other.id == id) {
        return Err(Violation::new(
            "networkID",
            "another network has it",
            "remove one of both",
        ));
    }
    let all = |field, texts: &[String]| -> Result<Vec<IpNet>, Violation> {
        texts.iter().map(|text| prefix(field, text)).collect()
    };
    let kind = network_kind(&spec.network_type)?;
    let addresses = spec.addresses.as_deref();
    if addresses.is_some() && kind != NetworkKind::External {
        let problem = "only of an external network do machines have single addresses";
        return Err(Violation::new("addresses", problem, "remove it"));
    }
    Ok(Network {
        id,
        kind,
        interfaces: interfaces(&spec, others)?,
        prefixes: all("prefixes", &spec.prefixes)?,
        addresses: addresses.map(|own| all("addresses", own)).transpose()?,
        nat_addresses: Vec::new(),
        masquerade: spec.nat,
    })
}

/// The kind of a network by its type.
pub(super) fn network_kind(text: &str) -> Result<NetworkKind, Violation> {
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
            Err(Violation::new("networkType", &problem, remedy))
        }
    }
}

fn interfaces(spec: &NetworkSpec, others: &[Network]) -> Result<Vec<String>, Violation> {
    let mut all = spec
        .interfaces
        .iter()
        .map(|text| interface("interfaces", text))
        .collect::<Result<Vec<String>, Violation>>()?;
    if let (true, Some(vrf)) = (all.is_empty(), spec.vrf) {
        // A packet is seen at the VRF, at its bridge or at the port of its segment.
        all.extend(interfaces_of_vrf(vrf));
    }
    if all.is_empty() {
        let remedy = "add `vrf` or `interfaces`";
        return Err(Violation::new(
            "vrf",
            "the network has no interface",
            remedy,
        ));
    }
    for own in &all {
        interface("vrf", own)?;
        if others.iter().any(|other| other.interfaces.contains(own)) {
            let problem = format!("the interface {own} belongs to another network");
            let remedy = "remove it from one of both";
            return Err(Violation::new("interfaces", &problem, remedy));
        }
    }
    Ok(all)
}

/// The interfaces that a VRF can have.
pub(super) fn interfaces_of_vrf(vrf: u32) -> [String; 3] {
    ["vrf", "vlan", "vni"].map(|kind| format!("{kind}{vrf}"))
}

fn egress_rule(value: &Value, networks: &mut [Network]) -> Result<(), Violation> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct EgressSpec {
        #[serde(rename = "networkID")]
        network_id: String,
        #[serde(default)]
        ips: Vec<String>,
    }
    let spec: EgressSpec = decode(value)?;
    let addresses = parts::nat_addresses(&spec.ips)?;
    let network = networks
        .iter_mut()
        .find(|network| network.id == spec.network_id);
    let network = network.ok_or_else(unknown_network)?;
    if network.kind != NetworkKind::External {
        let problem = "source NAT is for external networks";
        return Err(Violation::new(
            "networkID",
            problem,
            "name an external network",
        ));
    }
    network.nat_addresses.extend(addresses);
    network.nat_addresses.sort_unstable();
    network.nat_addresses.dedup();
    Ok(())
}

fn rate_limit(value: &Value, networks: &[Network]) -> Result<RateLimit, Violation> {
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
    Ok(RateLimit {
        network: spec.network_id,
        mebibytes_per_second: parts::rate(spec.rate)?,
    })
}

fn unknown_network() -> Violation {
    let remedy = "name a network of sources.static.firewall.networks";
    Violation::new("networkID", "there is no such network", remedy)
}
