//! The objects of the static source as they are written, with the names of the published CRDs. An
//! unknown field is refused: without it a rule could be wider than it was meant to be.

use proto_firewall::{
    AddressBlock, NamePattern, PortSpec, RuleSpec, ServiceSpec, Violation, printable,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_norway::Value;

/// Addresses, and those among them that are excepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressShape {
    cidr: String,
    #[serde(default)]
    except: Vec<String>,
}

/// A protocol with its ports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PortShape {
    #[serde(default)]
    protocol: Option<String>,
    #[serde(default)]
    port: Option<u32>,
    #[serde(default)]
    end_port: Option<u32>,
    #[serde(default)]
    icmp_type: Option<u32>,
}

/// DNS names that a policy is for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NameShape {
    #[serde(default)]
    match_name: Option<String>,
    #[serde(default)]
    match_pattern: Option<String>,
}

/// A rule, of the tenant or of the operator. Which fields it may have depends on whose it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleShape {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    action: Option<String>,
    #[serde(default)]
    direction: Option<String>,
    #[serde(default)]
    from: Vec<AddressShape>,
    #[serde(default)]
    to: Vec<AddressShape>,
    #[serde(default, rename = "toFQDNs")]
    to_fqdns: Vec<NameShape>,
    #[serde(default)]
    ports: Vec<PortShape>,
    #[serde(default)]
    log: bool,
}

/// A service of Kubernetes, as far as a firewall needs it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ServiceShape {
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
    ports: Vec<PortShape>,
}

impl From<AddressShape> for AddressBlock {
    fn from(shape: AddressShape) -> Self {
        let AddressShape { cidr, except } = shape;
        Self { cidr, except }
    }
}

impl From<PortShape> for PortSpec {
    fn from(shape: PortShape) -> Self {
        Self {
            protocol: shape.protocol,
            port: shape.port,
            end_port: shape.end_port,
            icmp_type: shape.icmp_type,
        }
    }
}

impl From<NameShape> for NamePattern {
    fn from(shape: NameShape) -> Self {
        Self {
            match_name: shape.match_name,
            match_pattern: shape.match_pattern,
        }
    }
}

impl From<RuleShape> for RuleSpec {
    fn from(shape: RuleShape) -> Self {
        Self {
            name: shape.name.unwrap_or_default(),
            description: shape.description.unwrap_or_default(),
            action: shape.action,
            direction: shape.direction,
            from: all(shape.from),
            to: all(shape.to),
            to_fqdns: all(shape.to_fqdns),
            ports: all(shape.ports),
            log: shape.log,
        }
    }
}

impl From<ServiceShape> for ServiceSpec {
    fn from(shape: ServiceShape) -> Self {
        Self {
            name: shape.name,
            namespace: shape.namespace,
            kind: shape.kind,
            load_balancer_ips: shape.load_balancer_ips,
            load_balancer_source_ranges: shape.load_balancer_source_ranges,
            ports: all(shape.ports),
        }
    }
}

fn all<A, B: From<A>>(shapes: Vec<A>) -> Vec<B> {
    shapes.into_iter().map(B::from).collect()
}

/// Reads an object.
pub(super) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Violation> {
    T::deserialize(value).map_err(|error| {
        let text = error.to_string();
        let (field, problem) = match text.split_once(": ") {
            Some((path, rest)) if !path.contains(' ') => (path, rest),
            _ => ("the object", text.as_str()),
        };
        let remedy = "write it as docs/reference/firewall.md shows it";
        Violation::new(field, problem, remedy)
    })
}

/// The same violation of a field that it does not name.
pub(super) fn in_field(field: &str, violation: Violation) -> Violation {
    Violation {
        field: printable(field),
        ..violation
    }
}
