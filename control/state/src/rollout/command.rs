//! Commands about rollouts.

use serde::{Deserialize, Serialize};

use crate::rollout::entity::{AgentRelease, RolloutGate, RolloutKind, WaveSize};

/// See [`Op::StartRollout`](crate::Op::StartRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRollout {
    /// The agents.
    pub kind: RolloutKind,
    /// The release.
    pub release: AgentRelease,
    /// Sizes of the waves, rising. Empty means that all agents are one wave.
    #[serde(default)]
    pub waves: Vec<WaveSize>,
    /// The gate between two waves.
    pub gate: RolloutGate,
}

/// See [`Op::StepRollout`](crate::Op::StepRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRollout {
    /// The agents.
    pub kind: RolloutKind,
}

/// See [`Op::ResumeRollout`](crate::Op::ResumeRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeRollout {
    /// The agents.
    pub kind: RolloutKind,
    /// Most failed agents from now on. `None` means as before.
    #[serde(default)]
    pub failures_max: Option<u32>,
}

/// See [`Op::AbortRollout`](crate::Op::AbortRollout).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbortRollout {
    /// The agents.
    pub kind: RolloutKind,
}
