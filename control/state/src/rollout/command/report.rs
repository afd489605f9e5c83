//! The report of an agent about its program.

use serde::{Deserialize, Serialize};

use crate::rollout::entity::{AgentKey, RolloutKind};

/// See [`Op::ReportAgent`](crate::Op::ReportAgent).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportAgent {
    /// SPIFFE id of the agent.
    pub identity: String,
    /// Its kind.
    pub kind: RolloutKind,
    /// Its name in rollouts.
    pub agent: AgentKey,
    /// Version of its program.
    pub version: String,
    /// Phase of its self-update.
    pub phase: String,
    /// Version that it was told of.
    #[serde(default)]
    pub wanted: Option<String>,
    /// The rule that the release breaks, or the reason of the failure.
    #[serde(default)]
    pub error: Option<String>,
    /// The reason why the agent does not do its work.
    #[serde(default)]
    pub ailment: Option<String>,
}
