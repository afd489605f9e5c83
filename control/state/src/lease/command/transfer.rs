//! Commands that give a lease to another lessee.

use proto_types::{LeaseId, MachineId, ProjectId};
use serde::{Deserialize, Serialize};

/// See [`Op::RequestLeaseTransfer`](crate::Op::RequestLeaseTransfer).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLeaseTransfer {
    /// The machine.
    pub machine: MachineId,
    /// The project that must lease it.
    pub project: ProjectId,
    /// The lease that the caller means. `None` means the one that runs.
    #[serde(default)]
    pub lease: Option<LeaseId>,
    /// The next lessee. `None` takes the request back.
    #[serde(default)]
    pub to: Option<ProjectId>,
}

/// See [`Op::DecideLeaseTransfer`](crate::Op::DecideLeaseTransfer).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideLeaseTransfer {
    /// The machine.
    pub machine: MachineId,
    /// The project that must own it.
    pub project: ProjectId,
    /// The lease that the caller means. `None` means the one that runs.
    #[serde(default)]
    pub lease: Option<LeaseId>,
    /// The next lessee, which must be the one that is asked for: a request that changed meanwhile is
    /// not consented to.
    pub to: ProjectId,
    /// `true` consents, `false` refuses.
    pub consent: bool,
}
