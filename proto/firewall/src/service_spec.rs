use serde::{Deserialize, Serialize};

use crate::PortSpec;

/// A service of type `LoadBalancer`, as far as a firewall needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Name, unique in its namespace.
    pub name: String,
    /// Namespace. `None` means `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `LoadBalancer`, the only type that is reached from outside. `None` means the same.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its addresses, at least one.
    #[serde(
        default,
        rename = "loadBalancerIPs",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub load_balancer_ips: Vec<String>,
    /// Prefixes of its clients. Empty means every address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_source_ranges: Vec<String>,
    /// Its ports, at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortSpec>,
}

impl ServiceSpec {
    /// Its namespace, also if it names none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// Its name with the namespace: `default/shop`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace(), self.name)
    }
}
