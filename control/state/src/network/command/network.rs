//! Commands about networks.

use ipnet::IpNet;
use proto_types::{NetworkId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};
use crate::network::entity::{ChildLength, NatType, NetworkFamily, NetworkType};

/// See [`Op::CreateNetwork`](crate::Op::CreateNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateNetwork {
    /// Id of the network. For a child without an id from the administrator, the proposer makes a
    /// UUIDv7.
    pub id: NetworkId,
    /// Type of the network.
    pub kind: NetworkType,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Partition of the network. `None` means all partitions.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Project that owns the network. `None` means that all projects may use it. Required for
    /// children.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Prefixes of the network. Empty for children, which get theirs from the parent.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// Prefixes that are reached through the network. Children take over those of the parent.
    #[serde(default)]
    pub destination_prefixes: Vec<IpNet>,
    /// Of super networks: prefix length of a child that requests none.
    #[serde(default)]
    pub default_child_length: ChildLength,
    /// Of super networks: shortest prefix that a child may request. A version without one has no
    /// limit.
    #[serde(default)]
    pub min_child_length: ChildLength,
    /// Address translation of outgoing traffic. `None` means no translation.
    #[serde(default)]
    pub nat: Option<NatType>,
    /// VRF id, 1 to 8388607, which is also the VNI of the segment. Required for external networks.
    #[serde(default)]
    pub vrf: Option<u32>,
    /// Of children: the network that they get their prefixes from.
    #[serde(default)]
    pub parent: Option<NetworkId>,
    /// Of super networks: prefixes that machines may announce beside their own.
    #[serde(default)]
    pub additional_announcable_cidrs: Vec<IpNet>,
    /// Of children: prefix length. A version without one gets the parent's default.
    #[serde(default)]
    pub length: ChildLength,
    /// Of children: IP versions. `None` means all versions of the parent.
    #[serde(default)]
    pub family: Option<NetworkFamily>,
}

/// See [`Op::UpdateNetwork`](crate::Op::UpdateNetwork). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateNetwork {
    /// The network to change.
    pub id: NetworkId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// The project that must own the network; another one is reported as not found. `None` means
    /// any, for administrators.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// All prefixes, at least one; refused for children. Every address and child must stay in one
    /// of them.
    #[serde(default)]
    pub prefixes: Option<Vec<IpNet>>,
    /// All prefixes that are reached through the network.
    #[serde(default)]
    pub destination_prefixes: Option<Vec<IpNet>>,
    /// Prefix length of a child that requests none.
    #[serde(default)]
    pub default_child_length: Option<ChildLength>,
    /// Shortest prefix that a child may request.
    #[serde(default)]
    pub min_child_length: Option<ChildLength>,
    /// Address translation of outgoing traffic.
    #[serde(default)]
    pub nat: Option<NatType>,
    /// All prefixes that machines may announce beside their own. A removal needs `force`.
    #[serde(default)]
    pub additional_announcable_cidrs: Option<Vec<IpNet>>,
    /// `true` removes announcable prefixes although machines may announce them.
    #[serde(default)]
    pub force: bool,
}

/// See [`Op::DeleteNetwork`](crate::Op::DeleteNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteNetwork {
    /// The network to delete.
    pub id: NetworkId,
    /// The project that must own the network; another one is reported as not found. `None` means
    /// any, for administrators.
    #[serde(default)]
    pub project: Option<ProjectId>,
}
