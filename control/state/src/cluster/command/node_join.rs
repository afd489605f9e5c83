//! Commands by which a control node joins.

use proto_types::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// See [`Op::InviteNode`](crate::Op::InviteNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InviteNode {
    /// SHA-256 of the invitation's secret.
    pub secret: Digest,
    /// SHA-256 of the only public key that may join by the invitation. `None` means the first key
    /// that shows the secret, at `peer_address`; needs [`INVITATIONS`](crate::INVITATIONS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// End of the invitation, at most a day away, and at most an hour without a key.
    pub expires_at: Timestamp,
    /// The only address for other control nodes, `host:port`, with which the invited node may join.
    /// Empty means any; needs [`INVITATIONS`](crate::INVITATIONS) if not empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer_address: String,
}

/// See [`Op::JoinNode`](crate::Op::JoinNode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinNode {
    /// Node id of the invitation.
    pub id: u64,
    /// SHA-256 of the secret that the node shows.
    pub secret: Digest,
    /// SHA-256 of the public key of the node's certificate request.
    pub key: Digest,
    /// Address for other control nodes, `host:port`.
    pub peer_address: String,
    /// The highest feature level that its program knows. One below the level of the cluster is
    /// refused.
    #[serde(default)]
    pub level: u32,
}
