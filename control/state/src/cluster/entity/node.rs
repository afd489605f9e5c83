//! The control nodes themselves.

use proto_types::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// A control node, from its invitation on. A number is given once and never again: a node that
/// lost its data comes back under another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlNode {
    /// The key: its number in the cluster.
    pub id: u64,
    /// SHA-256 of the invitation's secret. `None` means that the node formed the cluster.
    #[serde(default)]
    pub secret: Option<Digest>,
    /// SHA-256 of the only public key that may join by the invitation.
    #[serde(default)]
    pub key: Option<Digest>,
    /// Login of the inviter.
    #[serde(default)]
    pub invited_by: String,
    /// When.
    pub invited_at: Timestamp,
    /// End of the invitation.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// When it joined.
    #[serde(default)]
    pub joined_at: Option<Timestamp>,
    /// When it was removed; its certificate is refused from then on.
    #[serde(default)]
    pub removed_at: Option<Timestamp>,
    /// Where its peers reach it, host:port.
    #[serde(default)]
    pub peer_address: String,
    /// Where agents and machines reach it, host:port.
    #[serde(default)]
    pub mesh_addresses: Vec<String>,
    /// The highest feature level that its program knows.
    #[serde(default)]
    pub level: u32,
    /// Its program's version, for people.
    #[serde(default)]
    pub version: String,
}
