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
