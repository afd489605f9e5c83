//! Nodes of the VPN.

use proto_types::Timestamp;

/// A node of the VPN.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VpnNode {
    /// Number of the node.
    pub id: u64,
    /// Name of the node.
    pub name: String,
    /// User that it belongs to.
    pub user: String,
    /// Number of the key by which it joined. `None` means that it joined without one.
    pub key: Option<String>,
    /// Addresses inside the VPN.
    pub addresses: Vec<String>,
    /// Time of the last contact. `None` means never.
    pub last_seen: Option<Timestamp>,
    /// `true` if it is connected.
    pub online: bool,
}
