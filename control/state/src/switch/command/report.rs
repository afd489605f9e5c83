//! Commands of a switch's agent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proto_types::{MacAddr, PartitionId, SwitchId};
use serde::{Deserialize, Serialize};

use crate::switch::entity::PortObserved;

/// See [`Op::RegisterSwitch`](crate::Op::RegisterSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterSwitch {
    /// Which.
    pub id: SwitchId,
    /// Where the agent is.
    pub partition: PartitionId,
    /// Rack.
    #[serde(default)]
    pub rack: String,
    /// Room.
    #[serde(default)]
    pub room: String,
    /// Address of the management interface.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Underlay address that tunnels end at.
    #[serde(default)]
    pub vtep_ip: Option<IpAddr>,
    /// Ports by name, with their addresses.
    #[serde(default)]
    pub ports: BTreeMap<String, Option<MacAddr>>,
    /// LLDP port ids by port name, of ports whose id differs from the name.
    #[serde(default)]
    pub identifiers: BTreeMap<String, String>,
    /// `linux`, `sonic`, ...
    #[serde(default)]
    pub os_vendor: String,
    /// Version of that.
    #[serde(default)]
    pub os_version: String,
    /// Version of the core agent.
    #[serde(default)]
    pub agent_version: String,
    /// `true` if its agent reports LLDP neighbours. The agent of the published stack does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hears: bool,
}

/// See [`Op::ReportSwitch`](crate::Op::ReportSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportSwitch {
    /// Which.
    pub id: SwitchId,
    /// Raft term of the state that is applied.
    #[serde(default)]
    pub applied_term: u64,
    /// Generation of the state that is applied.
    #[serde(default)]
    pub applied_generation: u64,
    /// Milliseconds that it took.
    #[serde(default)]
    pub duration_ms: u64,
    /// Why the last reconcile failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Observed state of the ports by name.
    #[serde(default)]
    pub ports: BTreeMap<String, PortObserved>,
}
