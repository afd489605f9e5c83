//! Commands about addresses.

use std::net::IpAddr;

use proto_types::{IpId, MachineId, NetworkId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};
use crate::network::entity::{Family, IpKey, IpType};

/// See [`Op::CreateIp`](crate::Op::CreateIp).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateIp {
    /// Id.
    pub id: IpId,
    /// Out of which network.
    pub network: NetworkId,
    /// For whom.
    pub project: ProjectId,
    /// Shown name.
    #[serde(default)]
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// How long it stays.
    #[serde(default)]
    pub kind: IpType,
    /// Exactly this one ...
    #[serde(default)]
    pub ip: Option<IpAddr>,
    /// ... or the next of this version; IPv4 when the network has it. Not both.
    #[serde(default)]
    pub family: Option<Family>,
    /// Bound to this machine of the project.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// Out of an underlay too: an administrator asks.
    #[serde(default)]
    pub underlay: bool,
}

/// See [`Op::UpdateIp`](crate::Op::UpdateIp). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateIp {
    /// Which.
    pub key: IpKey,
    /// Guard.
    pub lock: Lock,
    /// Whose it must be.
    pub project: ProjectId,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Ephemeral to static only.
    #[serde(default)]
    pub kind: Option<IpType>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// `true` if an administrator asks, who may change addresses of an underlay too.
    #[serde(default)]
    pub underlay: bool,
}

/// See [`Op::DeleteIp`](crate::Op::DeleteIp).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteIp {
    /// Which.
    pub key: IpKey,
    /// Whose it must be.
    pub project: ProjectId,
    /// `true` if an administrator asks, who may delete addresses of an underlay too.
    #[serde(default)]
    pub underlay: bool,
}
