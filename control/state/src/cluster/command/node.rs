//! Changes of the control nodes themselves.

use serde::{Deserialize, Serialize};

/// See [`Op::AnnounceNode`](crate::Op::AnnounceNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnounceNode {
    /// Its number.
    pub id: u64,
    /// Where its peers reach it; empty when it has none.
    #[serde(default)]
    pub peer_address: String,
    /// Where agents and machines reach it.
    #[serde(default)]
    pub mesh_addresses: Vec<String>,
    /// The highest feature level that its program knows.
    #[serde(default)]
    pub level: u32,
    /// Its program's version.
    #[serde(default)]
    pub version: String,
}

/// See [`Op::RemoveNode`](crate::Op::RemoveNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveNode {
    /// Which.
    pub id: u64,
}
