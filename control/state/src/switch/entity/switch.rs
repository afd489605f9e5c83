//! Switches, their ports, and what they report.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proto_types::{PartitionId, SwitchId, Timestamp, Vni};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::switch::entity::{Drain, SwitchHealth, SwitchPort};

/// The effect of a registration under a known switch id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplaceMode {
    /// The registration is of the same switch.
    #[default]
    Operational,
    /// The registration is of a new switch, which takes over the cables of the old one.
    Replace,
}

/// Result of the last reconcile, as the core agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchSync {
    /// Raft term of the state that the agent applied last.
    pub applied_term: u64,
    /// Generation of the state that the agent applied last.
    pub applied_generation: u64,
    /// Duration of the last reconcile, milliseconds.
    pub duration_ms: u64,
    /// Time of the last report. Zero means never.
    pub at: Timestamp,
    /// Time and reason of the failure of the last reconcile. `None` means that it succeeded.
    pub error: Option<(Timestamp, String)>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The key: its host name.
    pub id: SwitchId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Partition of the switch.
    pub partition: PartitionId,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Rack. Empty means unknown.
    #[serde(default)]
    pub rack: String,
    /// Room. Empty means unknown.
    #[serde(default)]
    pub room: String,
    /// The effect of the next registration under this id.
    #[serde(default)]
    pub replace_mode: ReplaceMode,
    /// Address of the management interface. `None` means unknown.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Login of operators on the management interface. `None` means unknown.
    #[serde(default)]
    pub management_user: Option<String>,
    /// Command by which operators reach the console. `None` means unknown.
    #[serde(default)]
    pub console_command: Option<String>,
    /// Underlay address at which its tunnels end. `None` means that it has no tunnels.
    #[serde(default)]
    pub vtep_ip: Option<IpAddr>,
    /// Vendor of the operating system: `linux`, `sonic`, ...
    #[serde(default)]
    pub os_vendor: String,
    /// Version of the operating system.
    #[serde(default)]
    pub os_version: String,
    /// Version of the core agent.
    #[serde(default)]
    pub agent_version: String,
    /// `true` if its agent reports LLDP neighbours: then a cable needs the report of both ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hears: bool,
    /// Ports by name.
    #[serde(default)]
    pub ports: BTreeMap<String, SwitchPort>,
    /// Segments of the ports that a restore pinned, and that the last registration left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<String, Vni>,
    /// Result of the agent's last reconcile.
    #[serde(default)]
    pub sync: SwitchSync,
    /// Problems, drift and BGP sessions. Empty if the agent reports none.
    #[serde(default, skip_serializing_if = "SwitchHealth::is_empty")]
    pub health: SwitchHealth,
    /// The drain of its traffic. `None` means that it is in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

impl Switch {
    /// Lets a port follow its machine again. `true` if a restore had pinned it.
    pub(crate) fn release_pin(&mut self, port: &str) -> bool {
        let left_out = self.pins.remove(port);
        let pinned = self.ports.get_mut(port).and_then(|port| port.kept.take());
        left_out.or(pinned).is_some()
    }

    /// A switch of which nothing is known yet but its name and partition.
    pub(crate) fn unknown(id: SwitchId, partition: PartitionId) -> Self {
        Self {
            id,
            meta: Meta::default(),
            partition,
            description: String::new(),
            rack: String::new(),
            room: String::new(),
            replace_mode: ReplaceMode::Operational,
            management_ip: None,
            management_user: None,
            console_command: None,
            vtep_ip: None,
            os_vendor: String::new(),
            os_version: String::new(),
            agent_version: String::new(),
            hears: false,
            ports: BTreeMap::new(),
            pins: BTreeMap::new(),
            sync: SwitchSync::default(),
            health: SwitchHealth::default(),
            drain: None,
        }
    }
}
