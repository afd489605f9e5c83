//! Changes of the control nodes themselves.

use serde::{Deserialize, Serialize};

/// See [`Op::AnnounceNode`](crate::Op::AnnounceNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnounceNode {
    /// Id of the node in the cluster.
    pub id: u64,
    /// Address for other control nodes, `host:port`. Empty keeps the one on record.
    #[serde(default)]
    pub peer_address: String,
    /// Addresses for agents and machines, `host:port`.
    #[serde(default)]
    pub mesh_addresses: Vec<String>,
    /// The highest feature level that its program knows. One below the level of the cluster is
    /// refused.
    #[serde(default)]
    pub level: u32,
    /// Version of its program, for people.
    #[serde(default)]
    pub version: String,
}

/// See [`Op::RemoveNode`](crate::Op::RemoveNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveNode {
    /// Id of the node to remove.
    pub id: u64,
}
