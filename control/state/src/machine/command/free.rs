//! The command that ends a tenancy.

use proto_types::{MachineId, ProjectId};
use serde::{Deserialize, Serialize};

/// See [`Op::FreeMachine`](crate::Op::FreeMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FreeMachine {
    /// The machine.
    pub id: MachineId,
    /// The project that must have it. `None` means that an administrator frees it whoever has it,
    /// which needs a machine without signs of life.
    #[serde(default)]
    pub project: Option<ProjectId>,
}
