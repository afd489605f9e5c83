//! Switches, their ports, and what they report.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proto_types::{PartitionId, SwitchId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::switch::entity::SwitchPort;

/// The effect of a registration under a known switch id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplaceMode {
    /// It is the same switch.
    #[default]
    Operational,
    /// It takes the place of the old one.
    Replace,
}

/// Result of the last reconcile, as the core agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchSync {
    /// Raft term of the state that is applied.
    pub applied_term: u64,
    /// Generation of the state that is applied.
    pub applied_generation: u64,
    /// Milliseconds that it took.
    pub duration_ms: u64,
    /// When.
    pub at: Timestamp,
    /// Why the last reconcile failed, and when.
    pub error: Option<(Timestamp, String)>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The key: its host name.
    pub id: SwitchId,
    /// Head.
    pub meta: Meta,
    /// Where it is.
    pub partition: PartitionId,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Rack.
    #[serde(default)]
    pub rack: String,
    /// Room.
    #[serde(default)]
    pub room: String,
    /// See [`ReplaceMode`].
    #[serde(default)]
    pub replace_mode: ReplaceMode,
    /// Address of the management interface.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Login for people.
    #[serde(default)]
    pub management_user: Option<String>,
    /// How people reach its console.
    #[serde(default)]
    pub console_command: Option<String>,
    /// Underlay address that tunnels end at.
    #[serde(default)]
    pub vtep_ip: Option<IpAddr>,
    /// `linux`, `sonic`, ...
    #[serde(default)]
    pub os_vendor: String,
    /// Version of that.
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
    /// Result of the agent's last reconcile.
    #[serde(default)]
    pub sync: SwitchSync,
}
