//! Changes of the control nodes themselves.

use proto_types::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// See [`Op::InviteNode`](crate::Op::InviteNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InviteNode {
    /// SHA-256 of the secret.
    pub secret: Digest,
    /// SHA-256 of the only public key that it is good for.
    pub key: Digest,
    /// End of validity.
    pub expires_at: Timestamp,
}

/// See [`Op::JoinNode`](crate::Op::JoinNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinNode {
    /// The number in the invitation.
    pub id: u64,
    /// SHA-256 of the secret that was shown.
    pub secret: Digest,
    /// SHA-256 of the public key of the request.
    pub key: Digest,
    /// Where its peers reach it.
    pub peer_address: String,
    /// The highest feature level that its program knows.
    #[serde(default)]
    pub level: u32,
}

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
