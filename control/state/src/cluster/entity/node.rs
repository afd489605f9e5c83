//! The control nodes themselves.

use proto_types::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// A control node, from its invitation on. A number is given once and never again: a node that
/// lost its data comes back under another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlNode {
    /// The key: id of the node in the cluster, from 1.
    pub id: u64,
    /// SHA-256 of the invitation's secret. `None` means that the node formed the cluster.
    #[serde(default)]
    pub secret: Option<Digest>,
    /// SHA-256 of the only public key that may join by the invitation. `None` means that the node
    /// formed the cluster, or that the first key with the secret joins at `peer_address`; that key
    /// is then recorded here.
    #[serde(default)]
    pub key: Option<Digest>,
    /// Login of the inviter. Empty means that the node formed the cluster.
    #[serde(default)]
    pub invited_by: String,
    /// Time of the invitation, or of the first announcement of a node that formed the cluster.
    pub invited_at: Timestamp,
    /// End of the invitation. `None` means that there was none.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Time of its join. `None` means that the invitation is not used yet.
    #[serde(default)]
    pub joined_at: Option<Timestamp>,
    /// Time of its removal, from which its certificate is refused. `None` means that it is not
    /// removed.
    #[serde(default)]
    pub removed_at: Option<Timestamp>,
    /// Address for other control nodes, `host:port`. Of an invitation: the only address with which
    /// the node may join. Empty means unknown, or any.
    #[serde(default)]
    pub peer_address: String,
    /// Addresses for agents and machines, `host:port`.
    #[serde(default)]
    pub mesh_addresses: Vec<String>,
    /// The highest feature level that its program knows.
    #[serde(default)]
    pub level: u32,
    /// Version of its program, for people. Empty means unknown.
    #[serde(default)]
    pub version: String,
}
