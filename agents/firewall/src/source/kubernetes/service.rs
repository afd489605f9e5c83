use serde_json::{Map, Value, json};

use super::KubernetesObject;
use super::object::{config_value, without_nulls};

/// A `Service` as [`crate::source::SourceObjects::service`] has it. `None` if it is of another type
/// than `LoadBalancer`, or has no address yet.
#[must_use]
pub fn service_value(object: &KubernetesObject) -> Option<serde_norway::Value> {
    let spec = without_nulls(&object.spec);
    if spec.get("type").and_then(Value::as_str) != Some("LoadBalancer") {
        return None;
    }
    let mut addresses: Vec<Value> = Vec::new();
    let wanted = spec.get("loadBalancerIP").filter(|address| **address != "");
    let status = object.status.get("loadBalancer");
    let assigned = status.and_then(|status| status.get("ingress"));
    let assigned = assigned.and_then(Value::as_array).into_iter().flatten();
    // An entry with a host name instead of an address is for a load balancer of another kind.
    for address in wanted
        .into_iter()
        .chain(assigned.filter_map(|entry| entry.get("ip")))
    {
        if !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }
    if addresses.is_empty() {
        return None;
    }
    let ports = spec.get("ports").and_then(Value::as_array);
    let key = object.key();
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(key.name));
    fields.insert("namespace".to_owned(), json!(key.namespace));
    fields.insert("loadBalancerIPs".to_owned(), json!(addresses));
    let ranges = spec.get("loadBalancerSourceRanges");
    // In Kubernetes an empty list is as good as none.
    let named = |ranges: &&Value| ranges.as_array().is_none_or(|list| !list.is_empty());
    if let Some(ranges) = ranges.filter(named) {
        fields.insert("loadBalancerSourceRanges".to_owned(), ranges.clone());
    }
    let ports: Vec<Value> = ports.into_iter().flatten().map(port).collect();
    fields.insert("ports".to_owned(), json!(ports));
    Some(config_value(&Value::Object(fields)))
}

/// The parts of a port that packets from outside have: its protocol and its number.
fn port(port: &Value) -> Value {
    let mut fields = Map::new();
    for name in ["protocol", "port"] {
        if let Some(value) = port.get(name) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(fields)
}
