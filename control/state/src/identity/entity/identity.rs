//! Identities: the record of an agent or a machine that outlives its single certificates.

use proto_types::{AllocationId, BootTicketId, Digest, JoinTicketId, Timestamp};
use serde::{Deserialize, Serialize};

/// Longest absence after which an agent may resume, milliseconds: thirty days. After it the agent
/// needs a new join ticket.
pub const RESUME_MAX_MS: u64 = 30 * 24 * 3_600_000;
/// Retention of a booting machine's identity after its last certificate, milliseconds: ten minutes.
/// It never resumes, it joins with the ticket of its next boot.
const KEEP_BOOTED_MS: u64 = 10 * 60_000;

/// The proof by which an identity joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinedBy {
    /// Unknown: a restored state has neither the identity nor its ticket.
    Unknown,
    /// By a join ticket of an operator.
    JoinTicket(JoinTicketId),
    /// By a boot ticket, which a boot server got for a machine that it saw.
    BootTicket(BootTicketId),
    /// By a boot ticket, and the nonce that the machine's BMC holds.
    BmcNonce(BootTicketId),
    /// As the installed system of an allocated machine.
    Allocation(AllocationId),
}

/// The holder of certificates: an agent, or the system of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The key: SPIFFE id.
    pub id: String,
    /// The proof by which it joined.
    pub joined_by: JoinedBy,
    /// Time of the join.
    pub joined_at: Timestamp,
    /// SHA-256 of the only public key that gets further certificates.
    pub key: Digest,
    /// Time at which `key` replaced the key before it, or of the join.
    pub key_since: Timestamp,
    /// Serial number of the newest certificate.
    pub serial: String,
    /// Begin of validity of the newest certificate.
    pub issued_at: Timestamp,
    /// End of validity of the newest certificate.
    pub not_after: Timestamp,
    /// Generation of the authority that signed the newest certificate.
    pub authority: u32,
    /// Time at which an operator requested a new key. `None` means that none is requested.
    #[serde(default)]
    pub rotate_since: Option<Timestamp>,
    /// Time of its revocation. `None` means that it is not revoked.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
    /// Reason of its revocation, for people. Empty if none was given.
    #[serde(default)]
    pub revoked_reason: String,
}

impl Identity {
    /// `true` if the identity has a valid certificate.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.not_after
    }

    /// Retention after its newest certificate, milliseconds: as long as it could resume. Deleted
    /// earlier, a revoked identity would be unknown, and could resume.
    pub(crate) const fn keep_ms(&self) -> u64 {
        match self.joined_by {
            JoinedBy::BootTicket(_) | JoinedBy::BmcNonce(_) => KEEP_BOOTED_MS,
            _ => RESUME_MAX_MS + KEEP_BOOTED_MS,
        }
    }
}
