//! Cables of a machine and the segment of its ports.

use proto_types::{MacAddr, SwitchId};
use serde::{Deserialize, Serialize};

/// The segment that a machine's ports belong in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Where machines boot from the network.
    #[default]
    Provisioning,
    /// The one of the allocation's child network.
    Tenant,
    /// None: nobody knows what runs on it.
    Isolated,
}

/// A cable: both ends say so, see `machine::read::cables`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortLink {
    /// The switch.
    pub switch: SwitchId,
    /// Its port.
    pub port: String,
    /// The machine's NIC.
    pub mac: MacAddr,
    /// Only the switch says so: the machine did not hear it. Never in a tenant's segment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclaimed: bool,
}
