//! Holds, cleaning and removal of hosts.

use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use crate::pool::entity::HoldActor;

/// See [`Op::RemovePoolHost`](crate::Op::RemovePoolHost).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovePoolHost {
    /// The machine.
    pub machine: MachineId,
    /// `true` takes it away from a claim that has it.
    #[serde(default)]
    pub force: bool,
}

/// See [`Op::HoldHost`](crate::Op::HoldHost).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldHost {
    /// The machine.
    pub machine: MachineId,
    /// The holder: it sets and ends its own holds only.
    pub actor: HoldActor,
    /// Key of the hold, among those of the actor.
    pub key: String,
    /// `true` sets the hold, `false` ends it.
    pub is_held: bool,
    /// Free text.
    #[serde(default)]
    pub reason: String,
}

/// See [`Op::CleanHost`](crate::Op::CleanHost).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CleanHost {
    /// The machine.
    pub machine: MachineId,
}
