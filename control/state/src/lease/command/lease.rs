//! Commands that grant a lease and change its terms.

use proto_types::{LeaseId, MachineId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// See [`Op::GrantLease`](crate::Op::GrantLease).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantLease {
    /// Id of the new lease.
    pub id: LeaseId,
    /// The machine.
    pub machine: MachineId,
    /// The project that must own it.
    pub project: ProjectId,
    /// The project that gets it.
    pub lessee: ProjectId,
    /// The end, at most [`LEASE_MS_MAX`](crate::LEASE_MS_MAX) from now.
    pub expires_at: Timestamp,
    /// The latest end to which the lessee may extend it. `None` means that it may not.
    #[serde(default)]
    pub extendable_until: Option<Timestamp>,
    /// Time between the warning and the end, milliseconds. `None` means
    /// [`LEASE_WARNING_MS`](crate::LEASE_WARNING_MS); at most half of the lease.
    #[serde(default)]
    pub warning_ms: Option<u64>,
    /// Free text; the lessee sees it.
    #[serde(default)]
    pub comment: String,
}

/// A change of the limit up to which the lessee may extend a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionLimit {
    /// It stays.
    #[default]
    Keep,
    /// The lessee may not extend the lease.
    Clear,
    /// The lessee may extend the lease up to this time.
    Until(Timestamp),
}

/// See [`Op::ExtendLease`](crate::Op::ExtendLease).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtendLease {
    /// The machine.
    pub machine: MachineId,
    /// The project that must own or lease it.
    pub project: ProjectId,
    /// The lease that the caller means. `None` means the one that runs.
    #[serde(default)]
    pub lease: Option<LeaseId>,
    /// The new end, later than the present one. `None` means that it stays.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// The limit; only the owner changes it.
    #[serde(default)]
    pub limit: ExtensionLimit,
}
