//! The command that creates a child network for a user.

use proto_types::{NetworkId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::Labels;
use crate::network::entity::{ChildLength, NetworkFamily};

/// See [`Op::CreateChildNetwork`](crate::Op::CreateChildNetwork).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateChildNetwork {
    /// Id, a UUIDv7.
    pub id: NetworkId,
    /// The project that gets the network.
    pub project: ProjectId,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// The partition whose super network is the parent. Exactly one of `partition` and `parent`
    /// must be given.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// The parent.
    #[serde(default)]
    pub parent: Option<NetworkId>,
    /// Prefix length. A version without one gets the parent's default.
    #[serde(default)]
    pub length: ChildLength,
    /// IP versions. `None` means all versions of the parent.
    #[serde(default)]
    pub family: Option<NetworkFamily>,
}
