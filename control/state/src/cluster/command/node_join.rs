//! Commands by which a control node joins.

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
