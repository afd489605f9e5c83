//! Firewalls' ways into the VPN by which operators reach them.

use std::fmt;
use std::net::IpAddr;

use proto_types::{AllocationId, MachineId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// What a machine needs to come into a VPN.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpnAccess {
    /// The VPN's control server.
    pub address: String,
    /// Number of the key there, by which its node is found again.
    pub key_id: String,
    /// The secret, good for one node, sealed before it enters the state. Empty once that node was
    /// seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_key: Vec<u8>,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

impl fmt::Debug for VpnAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VpnAccess")
            .field("address", &self.address)
            .field("key_id", &self.key_id)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// An allocation that came into the VPN with its first entry. It stays until its node and its
/// key are gone from the VPN, however long the allocation is over by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpnMember {
    /// Which.
    pub allocation: AllocationId,
    /// Its machine.
    pub machine: MachineId,
    /// Whose it is, and the user of the VPN.
    pub project: ProjectId,
    /// Its way in.
    pub access: VpnAccess,
    /// Whether its node was there when last looked.
    #[serde(default)]
    pub connected: bool,
    /// The addresses of its node, inside of the VPN.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
}
