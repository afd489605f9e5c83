use serde::{Deserialize, Serialize};

/// The most that may come in from a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Id of the network.
    #[serde(rename = "networkID")]
    pub network_id: String,
    /// Limit, MiB/s, 1 to 4095.
    pub rate: u32,
}

/// Sources of flows from private networks into an external one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressAddresses {
    /// Id of the external network.
    #[serde(rename = "networkID")]
    pub network_id: String,
    /// Addresses of the project, at least one.
    pub ips: Vec<String>,
}
