//! Commands of a switch's agent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proto_types::{MacAddr, PartitionId, SwitchId};
use serde::{Deserialize, Serialize};

use crate::switch::entity::{PortObserved, SwitchHealth};

/// See [`Op::RegisterSwitch`](crate::Op::RegisterSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterSwitch {
    /// Id of the switch: its host name.
    pub id: SwitchId,
    /// Partition of the agent. A switch that is registered in another one is refused.
    pub partition: PartitionId,
    /// Rack. Empty means unknown.
    #[serde(default)]
    pub rack: String,
    /// Room. Empty means unknown.
    #[serde(default)]
    pub room: String,
    /// Address of the management interface. `None` means unknown.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Underlay address at which its tunnels end. `None` means that it has no tunnels.
    #[serde(default)]
    pub vtep_ip: Option<IpAddr>,
    /// MAC addresses of the ports, by port name. `None` means unknown. Ports that are missing here
    /// are deleted.
    #[serde(default)]
    pub ports: BTreeMap<String, Option<MacAddr>>,
    /// LLDP port ids by port name, of ports whose id differs from the name.
    #[serde(default)]
    pub identifiers: BTreeMap<String, String>,
    /// Vendor of the operating system: `linux`, `sonic`, ...
    #[serde(default)]
    pub os_vendor: String,
    /// Version of the operating system.
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
    /// Id of the switch.
    pub id: SwitchId,
    /// Raft term of the state that the agent applied last.
    #[serde(default)]
    pub applied_term: u64,
    /// Generation of the state that the agent applied last, at most the state's revision.
    #[serde(default)]
    pub applied_generation: u64,
    /// Duration of the last reconcile, milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Reason why the last reconcile failed. `None` means that it succeeded.
    #[serde(default)]
    pub error: Option<String>,
    /// Observed state of ports, by name. Ports that are missing here keep their last observation.
    #[serde(default)]
    pub ports: BTreeMap<String, PortObserved>,
    /// Problems, drift and BGP sessions. `None` keeps the last ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<SwitchHealth>,
}
