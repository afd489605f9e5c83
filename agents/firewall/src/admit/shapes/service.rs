use proto_firewall::{PortSpec, ServiceSpec, Violation};
use serde::Deserialize;
use serde_norway::Value;

use super::{all, decode, refuse_empty};

/// A protocol with its ports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PortShape {
    #[serde(default)]
    protocol: Option<String>,
    #[serde(default)]
    port: Option<u32>,
    #[serde(default)]
    end_port: Option<u32>,
    #[serde(default)]
    icmp_type: Option<u32>,
}

/// A service of Kubernetes, as far as a firewall needs it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ServiceShape {
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

/// Reads a service.
pub(in crate::admit) fn decode_service(value: &Value) -> Result<ServiceSpec, Violation> {
    refuse_empty(value, &["loadBalancerSourceRanges"])?;
    decode::<ServiceShape>(value).map(ServiceSpec::from)
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
