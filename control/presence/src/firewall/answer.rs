use serde::{Deserialize, Serialize};

use super::{CandidateEffect, FirewallNumbers};

/// The end of a question to a firewall, as the leader knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CandidateEnd {
    /// The firewall has answered.
    Answered(Box<CandidateEffect>),
    /// The firewall has no session with the leader, or lost it.
    NotConnected,
    /// The firewall compares another candidate, or too many wait at the leader.
    Busy,
    /// The firewall has not answered in time.
    TimedOut,
}

/// The leader's answer about a firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FirewallAnswer {
    /// The last counters. `None` means that it has none.
    Numbers(Option<FirewallNumbers>),
    /// The end of a question about a candidate.
    Candidate(CandidateEnd),
}
