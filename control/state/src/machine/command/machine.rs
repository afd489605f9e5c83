//! Commands about machines, by users and administrators.

use proto_types::{MachineId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::Availability;
use crate::meta::{LabelsUpdate, Lock};

/// See [`Op::UpdateMachine`](crate::Op::UpdateMachine). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateMachine {
    /// Which.
    pub id: MachineId,
    /// Guard.
    pub lock: Lock,
    /// Who must have it.
    pub project: ProjectId,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels of the allocation.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// Keys that may log in; refused once an installation has begun that writes others.
    #[serde(default)]
    pub ssh_public_keys: Option<Vec<String>>,
}

/// See [`Op::SetMachineState`](crate::Op::SetMachineState).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetMachineState {
    /// Which.
    pub id: MachineId,
    /// Whether users may have it.
    pub state: Availability,
    /// Why.
    #[serde(default)]
    pub description: String,
}

/// See [`Op::DeleteMachine`](crate::Op::DeleteMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteMachine {
    /// Which.
    pub id: MachineId,
}
