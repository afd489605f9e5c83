//! Keys by which nodes join the VPN.

use std::fmt;
use std::time::Duration;

use proto_types::Timestamp;

/// The properties of a key to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedVpnKey {
    /// User that the nodes belong to. It is created if it does not exist.
    pub user: String,
    /// `true` if the nodes are removed once they disconnect.
    pub ephemeral: bool,
    /// `true` if more than one node may join by it.
    pub reusable: bool,
    /// How long nodes may join by it.
    pub life: Duration,
}

/// A key by which a node joins.
#[derive(Clone, PartialEq, Eq)]
pub struct VpnKey {
    /// Number of the key. Nodes carry it, so the nodes of a key can be found.
    pub id: String,
    /// The secret.
    pub key: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Timestamp,
}

impl fmt::Debug for VpnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VpnKey")
            .field("id", &self.id)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
