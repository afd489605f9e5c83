//! The lease of a machine.

use proto_types::{LeaseId, MachineId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// Longest time between now and the end of a lease, milliseconds: ten years. A longer lease is
/// refused: it would be no lease.
pub const LEASE_MS_MAX: u64 = 10 * 365 * 24 * 3_600_000;
/// Default time between the warning and the end of a lease, milliseconds: a day.
pub const LEASE_WARNING_MS: u64 = 24 * 3_600_000;

/// The use of a machine by another project than its owner, until a date. There is one of each leased
/// machine, with the same lessee as the machine's [`Tenure`](crate::Tenure).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The machine; the key.
    pub machine: MachineId,
    /// Id, new for each lease.
    pub id: LeaseId,
    /// The owner of the machine, which does not change while the lease runs.
    pub owner: ProjectId,
    /// The project that uses the machine.
    pub lessee: ProjectId,
    /// Time at which it was granted.
    pub granted_at: Timestamp,
    /// Last change of its terms.
    pub updated_at: Timestamp,
    /// Time at which it ends.
    pub expires_at: Timestamp,
    /// The latest end to which the lessee may extend it. `None` means that only the owner may extend
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extendable_until: Option<Timestamp>,
    /// Time between the warning and the end, milliseconds.
    pub warning_ms: u64,
    /// Time of the warning. `None` means that the end is not near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned_at: Option<Timestamp>,
    /// The project that the lessee wants to have the lease instead. `None` means that it wants to keep
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_to: Option<ProjectId>,
    /// Free text of the owner; both projects see it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
}

impl Lease {
    /// `true` if its end is reached. It stays on record until a tick of the leader ends it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Time of the next change that a tick makes: the warning, or the end.
    pub fn due_at(&self) -> Timestamp {
        match self.warned_at {
            Some(_) => self.expires_at,
            None => self.warning_at(),
        }
    }

    /// Time from which the end is near.
    pub fn warning_at(&self) -> Timestamp {
        Timestamp::from_ms(self.expires_at.ms().saturating_sub(self.warning_ms))
    }
}
