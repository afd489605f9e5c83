//! Changes of the membership, and the reasons why one is refused.

use serde::{Deserialize, Serialize};

use super::PROMOTE_LAG_ENTRIES_MAX;
use crate::error::StoreError;

/// A change of the membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChange {
    /// Adds a node as a learner: it replicates the log and has no vote.
    Add {
        /// Its number; no node may have had it before.
        node: u64,
        /// Its peer address.
        address: String,
    },
    /// Makes a learner that has caught up a voter.
    Promote {
        /// The member.
        node: u64,
    },
    /// Removes a member.
    Remove {
        /// The member.
        node: u64,
    },
    /// Transfers leadership to a voter.
    Lead {
        /// The member.
        node: u64,
    },
    /// Changes the peer address of a member.
    Move {
        /// The member.
        node: u64,
        /// Its new peer address.
        address: String,
    },
}

/// The reason why a change of the membership was refused or failed. Nothing was changed, except as
/// [`MembershipError::NotTaken`] and [`StoreError::OutcomeUnknown`] say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum MembershipError {
    /// There is no such member.
    #[error("node {node} is not a member; see: metalmesh cluster status")]
    Unknown {
        /// The member.
        node: u64,
    },
    /// The node number is in use.
    #[error("node {node} is a member already; a node that lost its data joins under a new number")]
    Taken {
        /// The member.
        node: u64,
    },
    /// The member is a voter already.
    #[error("node {node} votes already")]
    Voter {
        /// The member.
        node: u64,
    },
    /// The member is a learner.
    #[error("node {node} has no vote; promote it first: metalmesh cluster promote {node}")]
    Learner {
        /// The member.
        node: u64,
    },
    /// The learner has not caught up.
    #[error(
        "node {node} is {behind} entries behind, {PROMOTE_LAG_ENTRIES_MAX} are allowed; wait \
         until it has caught up: metalmesh cluster status"
    )]
    Lags {
        /// The member.
        node: u64,
        /// Entries that it lacks.
        behind: u64,
    },
    /// The member does not answer heartbeats.
    #[error("node {node} was not heard for {unheard_ms} ms; start it and try again")]
    Silent {
        /// The member.
        node: u64,
        /// Time since its last answer, milliseconds; `u64::MAX` if it never answered.
        unheard_ms: u64,
    },
    /// The member leads.
    #[error(
        "node {node} leads; hand leadership over first: metalmesh cluster transfer-leader NODE"
    )]
    Leads {
        /// The member.
        node: u64,
    },
    /// The member is the only voter.
    #[error("node {node} is the only voter; promote another node first")]
    OnlyVoter {
        /// The member.
        node: u64,
    },
    /// The remaining voters would have no quorum.
    #[error(
        "without node {node} only {reachable} of {voters} voters would be reachable, {needed} are \
         needed to write; bring the others back first, or add and promote a node"
    )]
    LosesQuorum {
        /// The member.
        node: u64,
        /// Remaining voters that answer.
        reachable: usize,
        /// Remaining voters.
        voters: usize,
        /// Their quorum.
        needed: usize,
    },
    /// Another change is in progress.
    #[error("another change of the membership is not finished; try again")]
    InProgress,
    /// The new leader was not elected in time. It may still be.
    #[error("node {node} did not take over within {within_ms} ms; see: metalmesh cluster status")]
    NotTaken {
        /// The member.
        node: u64,
        /// The time limit, milliseconds.
        within_ms: u64,
    },
    /// The change could not be carried out.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The permit does not cover changes of the members.
    #[error("the permit covers no change of the members")]
    NotCovered,
}
