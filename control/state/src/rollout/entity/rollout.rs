//! A rollout: its release, its plan, and how far it is.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::{AgentKey, RolloutGate, RolloutKind, WaveSize};

/// A release of an agent. Control has no key of releases: an agent runs it only if a key of its own
/// files has signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRelease {
    /// Its version, as Semantic Versioning has it.
    pub version: String,
    /// Its place, https.
    pub url: String,
    /// SHA-256 of its signed head.
    pub head_digest: Digest,
}

/// The state of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RolloutState {
    /// Waves follow one another.
    Running,
    /// No further wave begins until an operator resumes the rollout. Agents of earlier waves keep the
    /// release.
    Stopped {
        /// The cause.
        reason: String,
    },
    /// All agents were told of the release, which is the site's from then on.
    Done,
}

/// A rollout of a release to all agents of a kind. There is at most one for each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// The key: the agents that it is for.
    pub kind: RolloutKind,
    /// The release.
    pub release: AgentRelease,
    /// Sizes of the waves, rising. After the last one a wave of all agents follows.
    pub waves: Vec<WaveSize>,
    /// The gate between two waves.
    pub gate: RolloutGate,
    /// Its state.
    pub state: RolloutState,
    /// Number of the wave that began last, from 1. 0 means that none has begun.
    pub wave: u32,
    /// Begin of that wave, or the time at which the rollout was resumed in it.
    pub wave_since: Timestamp,
    /// Time since which all agents that were told of the release run it and are healthy, those that
    /// failed apart. `None` means that one does not, or is not.
    #[serde(default)]
    pub settled_since: Option<Timestamp>,
    /// The agents that it is for: those that were there when its first wave began, and still are. Others
    /// get the release when it is done. `None` means all of them: no wave has begun, an earlier program
    /// began it, or it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<BTreeSet<AgentKey>>,
    /// Agents that were told of the release.
    #[serde(default)]
    pub told: BTreeSet<AgentKey>,
    /// Agents among them that failed, with the cause.
    #[serde(default)]
    pub failed: BTreeMap<AgentKey, String>,
    /// Login of the caller that started it.
    pub started_by: String,
    /// Time of that.
    pub started_at: Timestamp,
}

impl Rollout {
    /// `true` if it is for this agent.
    pub fn is_for(&self, agent: &AgentKey) -> bool {
        let members = self.members.as_ref();
        members.is_none_or(|members| members.contains(agent))
    }
}
