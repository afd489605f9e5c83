//! Commands about machines, by users and administrators.

use proto_types::{MachineId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::Availability;
use crate::meta::{LabelsUpdate, Lock};

/// See [`Op::UpdateMachine`](crate::Op::UpdateMachine). Fields that are `None` stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateMachine {
    /// The machine.
    pub id: MachineId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// The project that must have it.
    pub project: ProjectId,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels of the allocation.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// Keys that may log in. Refused once an installation that writes other keys has begun.
    #[serde(default)]
    pub ssh_public_keys: Option<Vec<String>>,
}

/// See [`Op::SetMachineState`](crate::Op::SetMachineState).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetMachineState {
    /// The machine.
    pub id: MachineId,
    /// The new availability.
    pub state: Availability,
    /// The reason; empty if available.
    #[serde(default)]
    pub description: String,
}

/// See [`Op::DeleteMachine`](crate::Op::DeleteMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteMachine {
    /// The machine.
    pub id: MachineId,
}
