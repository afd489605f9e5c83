//! Commands about networks and addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use proto_types::{IpId, MachineId, NetworkId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::entities::{ChildLength, Family, IpKey, IpType, NatType, NetworkFamily, NetworkType};
use crate::meta::{Labels, LabelsUpdate, Lock};

/// See [`Op::CreateNetwork`](crate::Op::CreateNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateNetwork {
    /// Id; the proposer makes a UUIDv7 when the admin gave none for a child.
    pub id: NetworkId,
    /// What it is for.
    pub kind: NetworkType,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Where it is.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Whose it is.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Its prefixes; children get theirs from the parent.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// What is reached through it.
    #[serde(default)]
    pub destination_prefixes: Vec<IpNet>,
    /// Of super networks: length of child prefixes.
    #[serde(default)]
    pub default_child_length: ChildLength,
    /// Of super networks: shortest child prefix.
    #[serde(default)]
    pub min_child_length: ChildLength,
    /// Translation on the way out.
    #[serde(default)]
    pub nat: Option<NatType>,
    /// VRF.
    #[serde(default)]
    pub vrf: Option<u32>,
    /// Of children: what it comes out of.
    #[serde(default)]
    pub parent: Option<NetworkId>,
    /// Of super networks: further prefixes that machines may announce.
    #[serde(default)]
    pub additional_announcable_cidrs: Vec<IpNet>,
    /// Of children: length of the prefixes.
    #[serde(default)]
    pub length: ChildLength,
    /// Of children: versions of IP.
    #[serde(default)]
    pub family: Option<NetworkFamily>,
}

/// See [`Op::CreateChildNetwork`](crate::Op::CreateChildNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateChildNetwork {
    /// Id, a UUIDv7.
    pub id: NetworkId,
    /// Whose it is.
    pub project: ProjectId,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Take it from this partition's super network ...
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// ... or from this network; one of the two.
    #[serde(default)]
    pub parent: Option<NetworkId>,
    /// Length of the prefixes.
    #[serde(default)]
    pub length: ChildLength,
    /// Versions of IP; those of the parent without it.
    #[serde(default)]
    pub family: Option<NetworkFamily>,
}

/// See [`Op::UpdateNetwork`](crate::Op::UpdateNetwork). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateNetwork {
    /// Which.
    pub id: NetworkId,
    /// Guard.
    pub lock: Lock,
    /// Only when it is of this project: by a user.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// All prefixes; not of children.
    #[serde(default)]
    pub prefixes: Option<Vec<IpNet>>,
    /// What is reached through it.
    #[serde(default)]
    pub destination_prefixes: Option<Vec<IpNet>>,
    /// Length of child prefixes.
    #[serde(default)]
    pub default_child_length: Option<ChildLength>,
    /// Shortest child prefix.
    #[serde(default)]
    pub min_child_length: Option<ChildLength>,
    /// Translation on the way out.
    #[serde(default)]
    pub nat: Option<NatType>,
    /// Further prefixes that machines may announce.
    #[serde(default)]
    pub additional_announcable_cidrs: Option<Vec<IpNet>>,
    /// Remove announcable prefixes although machines may announce them.
    #[serde(default)]
    pub force: bool,
}

/// See [`Op::DeleteNetwork`](crate::Op::DeleteNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteNetwork {
    /// Which.
    pub id: NetworkId,
    /// Only when it is of this project: by a user.
    #[serde(default)]
    pub project: Option<ProjectId>,
}

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

/// See [`Op::UpdateIp`](crate::Op::UpdateIp). Fields that are none stay.
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
