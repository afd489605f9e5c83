//! The cluster as one node sees it.

use serde::{Deserialize, Serialize};

use super::{MemberChange, MembershipError, check, spare_voters};

/// A member as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// Its number.
    pub node: u64,
    /// Its peer address.
    pub address: String,
    /// `true` if it is a voter, `false` if it is a learner.
    pub is_voter: bool,
    /// `true` if it leads, as far as this node knows.
    pub is_leader: bool,
    /// Index of the last entry that it is known to have. `None` on a follower, or if unknown.
    pub matched: Option<u64>,
    /// Time since its last heartbeat answer, milliseconds. `None` on a follower, or if it never
    /// answered.
    pub heard_ms: Option<u64>,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// The leader; `None` if none is known.
    pub leader: Option<u64>,
    /// The current term.
    pub term: u64,
    /// Index of the last entry in the log.
    pub last_log: u64,
    /// All members.
    pub members: Vec<MemberState>,
}

impl ClusterView {
    /// Checks that `change` makes sense and leaves a cluster that can write.
    ///
    /// # Errors
    /// The reason why it must not be made.
    pub fn check(&self, change: &MemberChange) -> Result<(), MembershipError> {
        check(change, &self.members, self.last_log)
    }

    /// Voters that may still fail with a majority left to write: those that answer the leader, beyond
    /// a majority of all. 0 in the view of a node that does not lead, which has not heard the others.
    pub fn spare_voters(&self) -> usize {
        spare_voters(&self.members)
    }
}
