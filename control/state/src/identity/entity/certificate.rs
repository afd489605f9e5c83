//! Certificates of agents and machines.

use proto_types::{AllocationId, Digest, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::entity::{first, is_first};

/// A certificate that we issued and that has not ended yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The key: serial number, lower-case hex.
    pub serial: String,
    /// SPIFFE id that it carries.
    pub identity: String,
    /// Begin of validity.
    pub issued_at: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
    /// The machine that it is for. `None` for agents.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// The allocation that it is for. It is revoked when the allocation ends. `None` for agents and
    /// for hammer.
    #[serde(default)]
    pub allocation: Option<AllocationId>,
    /// SHA-256 of its public key; `IssueCertificate` is refused without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// Generation of the authority that signed it.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub authority: u32,
    /// Time of its revocation. `None` means that it is not revoked.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
    /// Reason of its revocation, for people. Empty if none was given.
    #[serde(default)]
    pub revoked_reason: String,
}
