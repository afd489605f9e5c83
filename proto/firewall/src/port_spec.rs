use serde::{Deserialize, Serialize};

/// A protocol with its ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortSpec {
    /// `TCP`, `UDP`, `SCTP`, `ICMP` or `ICMPv6`. `None` means TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// First port. `None` means the whole protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// Last port. `None` means only `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_port: Option<u32>,
    /// Type of ICMP. `None` means every type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icmp_type: Option<u32>,
}
