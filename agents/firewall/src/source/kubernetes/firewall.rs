use serde_json::{Map, Value, json};

use super::KubernetesObject;
use super::object::{config_value, without_nulls};
use crate::config::FirewallSpec;

/// The operator's objects of a `Firewall` (firewall.metal-stack.io/v2). `None` if its status does
/// not name the networks yet: without them every rule would be for nothing.
#[must_use]
pub fn firewall_spec(object: &KubernetesObject) -> Option<FirewallSpec> {
    let spec = without_nulls(&object.spec);
    let networks = object.status.get("firewallNetworks")?.as_array()?;
    if networks.is_empty() {
        return None;
    }
    let text = |name: &str| spec.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| -> Vec<serde_norway::Value> {
        let list = spec.get(name).and_then(Value::as_array);
        list.into_iter().flatten().map(config_value).collect()
    };
    Some(FirewallSpec {
        controller_url: text("controllerURL"),
        controller_version: text("controllerVersion"),
        controller_digest: None,
        internal_prefixes: list("internalPrefixes"),
        networks: networks.iter().map(network).collect(),
        dns_server_address: spec
            .get("dnsServerAddress")
            .filter(|address| **address != "")
            .map(config_value),
        dns_port: spec.get("dnsPort").map(config_value),
        dns_listen_addresses: Vec::new(),
        rate_limits: list("rateLimits"),
        egress_rules: list("egressRules"),
        allowed_networks: spec.get("allowedNetworks").map(config_value),
        log_accepted_connections: spec.get("logAcceptedConnections") == Some(&Value::Bool(true)),
        management: None,
        rules: Vec::new(),
    })
}

/// A network of the status, with the names of the configuration.
fn network(value: &Value) -> serde_norway::Value {
    let value = without_nulls(value);
    let mut fields = Map::new();
    for name in ["networkID", "networkType", "nat"] {
        if let Some(inner) = value.get(name) {
            fields.insert(name.to_owned(), inner.clone());
        }
    }
    // The underlay is in the default VRF, which has no number. Its interfaces are not known here,
    // and no rule is for it.
    if let Some(vrf) = value.get("vrf") {
        fields.insert("vrf".to_owned(), vrf.clone());
    }
    let kind = value.get("networkType").and_then(Value::as_str);
    let mut prefixes = Vec::new();
    let is_private = kind.is_some_and(|kind| kind.starts_with("private"));
    // Addresses behind an external network are not its own prefix.
    for name in ["prefixes", "destinationPrefixes"] {
        if name == "prefixes" || !is_private {
            let list = value.get(name).and_then(Value::as_array);
            prefixes.extend(list.into_iter().flatten().cloned());
        }
    }
    fields.insert("prefixes".to_owned(), json!(prefixes));
    config_value(&Value::Object(fields))
}
