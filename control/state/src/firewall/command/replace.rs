//! A firewall that takes the place of another one.

use proto_types::{MachineId, ProjectId};
use serde::{Deserialize, Serialize};

/// A step of a replacement. Each can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplacementStep {
    /// Records the replacement, and gives it the sets of rules of the firewall that it replaces.
    Prepare,
    /// The replacement gets the place of the other firewall, which becomes the last of the healthy
    /// ones.
    TakeOver,
    /// Both have their own places again.
    Undo,
}

/// See [`Op::ReplaceFirewall`](crate::Op::ReplaceFirewall).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaceFirewall {
    /// The firewall that is replaced.
    pub machine: MachineId,
    /// The project of both.
    pub project: ProjectId,
    /// The firewall that takes its place.
    pub by: MachineId,
    /// The step.
    pub step: ReplacementStep,
}
