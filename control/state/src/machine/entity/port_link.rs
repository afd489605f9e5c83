//! Cables of a machine and the segment of its ports.

use proto_types::{MacAddr, SwitchId};
use serde::{Deserialize, Serialize};

/// The segment that a machine's ports belong in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// The segment in which machines boot from the network.
    #[default]
    Provisioning,
    /// The segment of the allocation's child network.
    Tenant,
    /// No segment: it is unknown what runs on the machine.
    Isolated,
}

/// A cable that both ends report, see `machine::read::cables`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PortLink {
    /// The switch.
    pub switch: SwitchId,
    /// Its port.
    pub port: String,
    /// The machine's NIC.
    pub mac: MacAddr,
    /// `true` if only the switch reports it and the machine did not hear the switch. The port is
    /// then never put into a tenant's segment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclaimed: bool,
}
