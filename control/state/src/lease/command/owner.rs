//! Commands about the owner of a machine.

use proto_types::{MachineId, ProjectId};
use serde::{Deserialize, Serialize};

/// See [`Op::SetMachineOwner`](crate::Op::SetMachineOwner).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMachineOwner {
    /// The machine.
    pub machine: MachineId,
    /// The project that administers it. `None` gives it back to the site.
    #[serde(default)]
    pub owner: Option<ProjectId>,
}

/// See [`Op::TransferMachine`](crate::Op::TransferMachine).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferMachine {
    /// The machine.
    pub machine: MachineId,
    /// The project that must own it.
    pub project: ProjectId,
    /// The next owner.
    pub to: ProjectId,
}
