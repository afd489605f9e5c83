//! Access of firewalls to the VPN by which operators reach them.

use std::fmt;
use std::net::IpAddr;

use proto_types::{AllocationId, MachineId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// Credentials with which a machine joins a VPN.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpnAccess {
    /// The VPN's control server.
    pub address: String,
    /// Id of the key on that server, by which its node is found again.
    pub key_id: String,
    /// The secret, good for one node, sealed before it enters the state. Empty once that node was
    /// seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_key: Vec<u8>,
    /// End of its validity.
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

/// A VPN member: an allocation with VPN access. The record outlives the allocation, until its node
/// and its key are gone from the VPN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpnMember {
    /// The allocation; the key.
    pub allocation: AllocationId,
    /// Its machine.
    pub machine: MachineId,
    /// Project of the allocation, which is also the user in the VPN.
    pub project: ProjectId,
    /// Its credentials.
    pub access: VpnAccess,
    /// `true` if its node was present at the last look.
    #[serde(default)]
    pub connected: bool,
    /// Addresses of its node inside the VPN.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
}
