//! Commands about addresses.

use std::net::IpAddr;

use proto_types::{IpId, MachineId, NetworkId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};
use crate::network::entity::{Family, IpKey, IpType};

/// See [`Op::CreateIp`](crate::Op::CreateIp).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateIp {
    /// Id of this use of the address.
    pub id: IpId,
    /// The network that the address is taken from.
    pub network: NetworkId,
    /// The project that gets the address.
    pub project: ProjectId,
    /// Display name. Empty means none.
    #[serde(default)]
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Life of the address: ephemeral or static.
    #[serde(default)]
    pub kind: IpType,
    /// The address to take. `None` means the next free one.
    #[serde(default)]
    pub ip: Option<IpAddr>,
    /// IP version of the next free address; refused together with `ip`. `None` means IPv4, if the
    /// network has it.
    #[serde(default)]
    pub family: Option<Family>,
    /// The machine of the project that uses the address. `None` means none.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// `true` if an administrator asks, who may take addresses of an underlay too.
    #[serde(default)]
    pub underlay: bool,
}

/// See [`Op::UpdateIp`](crate::Op::UpdateIp). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateIp {
    /// The address to change.
    pub key: IpKey,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// The project that must own the address; another one is reported as not found.
    pub project: ProjectId,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// New life of the address. A static one cannot become ephemeral.
    #[serde(default)]
    pub kind: Option<IpType>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// `true` if an administrator asks, who may change addresses of an underlay too.
    #[serde(default)]
    pub underlay: bool,
}

/// See [`Op::DeleteIp`](crate::Op::DeleteIp).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteIp {
    /// The address to delete.
    pub key: IpKey,
    /// The project that must own the address; another one is reported as not found.
    pub project: ProjectId,
    /// `true` if an administrator asks, who may delete addresses of an underlay too.
    #[serde(default)]
    pub underlay: bool,
}
