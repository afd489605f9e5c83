//! Commands that change a switch.

use std::net::IpAddr;

use proto_types::SwitchId;
use serde::{Deserialize, Serialize};

use crate::meta::{LabelsUpdate, Lock};
use crate::switch::entity::ReplaceMode;

/// See [`Op::UpdateSwitch`](crate::Op::UpdateSwitch). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSwitch {
    /// The switch to change.
    pub id: SwitchId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// The effect of the next registration under this id.
    #[serde(default)]
    pub replace_mode: Option<ReplaceMode>,
    /// Address of the management interface.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Login of operators on the management interface.
    #[serde(default)]
    pub management_user: Option<String>,
    /// Command by which operators reach the console.
    #[serde(default)]
    pub console_command: Option<String>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::SetSwitchPort`](crate::Op::SetSwitchPort).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetSwitchPort {
    /// The switch.
    pub id: SwitchId,
    /// Name of the port.
    pub port: String,
    /// `true` if the port is administratively up.
    pub admin_up: bool,
}
