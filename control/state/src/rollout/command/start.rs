//! Commands that carry a rollout on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::rollout::entity::{AgentKey, AgentRelease, RolloutGate, RolloutKind, WaveSize};

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
    /// Agents of that kind that have had no session with the leader for a while. Firewalls are judged by
    /// their signs of life.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub silent: BTreeSet<AgentKey>,
}
