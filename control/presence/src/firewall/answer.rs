use serde::{Deserialize, Serialize};

use super::{CandidateEffect, FirewallNumbers};

/// The state of a candidate at the leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CandidateState {
    /// The firewall has not answered yet.
    Waiting,
    /// The firewall has answered.
    Answered(Box<CandidateEffect>),
    /// The firewall has no session with the leader, or lost it.
    NotConnected,
    /// The firewall compares another candidate, or too many wait at the leader.
    Busy,
}

/// The leader's answer about a firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FirewallAnswer {
    /// The last counters. `None` means that it has none.
    Numbers(Option<FirewallNumbers>),
    /// The state of a candidate.
    Candidate(CandidateState),
}
