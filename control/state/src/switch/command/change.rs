//! Commands that change a switch.

use std::net::IpAddr;

use proto_types::SwitchId;
use serde::{Deserialize, Serialize};

use crate::meta::{LabelsUpdate, Lock};
use crate::switch::entity::ReplaceMode;

/// See [`Op::UpdateSwitch`](crate::Op::UpdateSwitch). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSwitch {
    /// Which.
    pub id: SwitchId,
    /// Guard.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// See [`ReplaceMode`].
    #[serde(default)]
    pub replace_mode: Option<ReplaceMode>,
    /// Address of the management interface.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Login for people.
    #[serde(default)]
    pub management_user: Option<String>,
    /// How people reach its console.
    #[serde(default)]
    pub console_command: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::SetSwitchPort`](crate::Op::SetSwitchPort).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetSwitchPort {
    /// Which.
    pub id: SwitchId,
    /// Port.
    pub port: String,
    /// Switched on.
    pub admin_up: bool,
}
