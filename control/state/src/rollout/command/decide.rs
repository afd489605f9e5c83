//! Commands of an operator about a rollout that is under way.

use serde::{Deserialize, Serialize};

use crate::rollout::entity::RolloutKind;

/// See [`Op::ResumeRollout`](crate::Op::ResumeRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeRollout {
    /// The agents.
    pub kind: RolloutKind,
    /// Most failed agents from now on. `None` means as before.
    #[serde(default)]
    pub failures_max: Option<u32>,
}

/// See [`Op::PauseRollout`](crate::Op::PauseRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRollout {
    /// The agents.
    pub kind: RolloutKind,
}

/// See [`Op::AbortRollout`](crate::Op::AbortRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbortRollout {
    /// The agents.
    pub kind: RolloutKind,
}
