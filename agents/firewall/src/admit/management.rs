use ipnet::IpNet;
use proto_firewall::Violation;
use proto_firewall::parts::prefix;
use serde::Deserialize;
use serde_norway::Value;

use super::names::interface;
use super::shapes::decode;
use crate::rule::{InputPolicy, Network, NetworkKind};

/// Most ports that are open for management. One would do; more are for exporters of metrics.
const PORTS_MAX: usize = 64;

/// Access for management as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManagementSpec {
    #[serde(default)]
    interfaces: Option<Vec<String>>,
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    ports: Option<Vec<u16>>,
}

/// Reads who may manage the firewall. What is absent is as without the object.
pub(super) fn management(value: &Value, networks: &[Network]) -> Result<InputPolicy, Violation> {
    let spec: ManagementSpec = decode(value)?;
    let mut policy = InputPolicy::default();
    if let Some(names) = &spec.interfaces {
        let names: Result<Vec<String>, Violation> = names
            .iter()
            .map(|text| interface("interfaces", text))
            .collect();
        policy.management_interfaces = names?;
    }
    let of_tenant = |own: &&String| {
        let mut private = networks
            .iter()
            .filter(|network| network.kind == NetworkKind::Private);
        private.any(|network| network.interfaces.contains(own))
    };
    if let Some(own) = policy.management_interfaces.iter().find(of_tenant) {
        let problem = format!("the interface {own} belongs to a private network");
        let remedy = "name an interface that no tenant is behind";
        return Err(Violation::new("interfaces", &problem, remedy));
    }
    let prefixes: Result<Vec<IpNet>, Violation> = spec
        .prefixes
        .iter()
        .map(|text| prefix("prefixes", text))
        .collect();
    policy.management_prefixes = prefixes?;
    if let Some(ports) = spec.ports {
        if ports.contains(&0) || ports.len() > PORTS_MAX {
            let problem = "they are no list of at most 64 ports from 1 to 65535";
            return Err(Violation::new("ports", problem, "write it as [22, 9100]"));
        }
        policy.management_ports = ports;
    }
    Ok(policy)
}
