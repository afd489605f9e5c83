//! The command that ends a lease before its date.

use proto_types::{LeaseId, MachineId, ProjectId};
use serde::{Deserialize, Serialize};

/// The party that ends a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseEnder {
    /// A project: the lessee at any time, the owner as long as the lessee does not use the machine.
    Project(ProjectId),
    /// An administrator, at any time.
    Administrator,
}

/// See [`Op::EndLease`](crate::Op::EndLease).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndLease {
    /// The machine.
    pub machine: MachineId,
    /// The party that ends it.
    pub by: LeaseEnder,
    /// The lease that the caller means. `None` means the one that runs.
    #[serde(default)]
    pub lease: Option<LeaseId>,
    /// The reason, for the machine's events.
    #[serde(default)]
    pub reason: String,
}
