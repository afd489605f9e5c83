//! Commands about networks.

use ipnet::IpNet;
use proto_types::{NetworkId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};
use crate::network::entity::{ChildLength, NatType, NetworkFamily, NetworkType};

/// See [`Op::CreateNetwork`](crate::Op::CreateNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateNetwork {
    /// Id; the proposer makes a UUIDv7 when the admin gave none for a child.
    pub id: NetworkId,
    /// Type of the network.
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
    /// Prefixes that are reached through it.
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

/// See [`Op::UpdateNetwork`](crate::Op::UpdateNetwork). `None` keeps a field.
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
    /// Prefixes that are reached through it.
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
