//! Which changes of a cluster make sense and leave one that can write. Pure; the store carries them
//! out.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// Entries that a learner may be behind the leader when it is promoted.
pub const PROMOTE_LAG_ENTRIES_MAX: u64 = 1000;
/// A member that was not heard for longer does not count as reachable.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// A change of the membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChange {
    /// Adds a node that copies everything and has no vote.
    Add {
        /// Its number; one that no node ever had.
        node: u64,
        /// Where peers reach it.
        address: String,
    },
    /// Gives a learner that has caught up a vote.
    Promote {
        /// Which.
        node: u64,
    },
    /// Takes a node out.
    Remove {
        /// Which.
        node: u64,
    },
    /// Makes another voter the leader.
    Lead {
        /// Which.
        node: u64,
    },
    /// Writes down where peers reach a member from now on.
    Move {
        /// Which.
        node: u64,
        /// Where.
        address: String,
    },
}

/// Why a change of the membership was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum MembershipError {
    /// There is no such member.
    #[error("node {node} is not a member; see: metalmesh cluster status")]
    Unknown {
        /// Which.
        node: u64,
    },
    /// The number is taken.
    #[error("node {node} is a member already; a node that lost its data joins under a new number")]
    Taken {
        /// Which.
        node: u64,
    },
    /// It votes already.
    #[error("node {node} votes already")]
    Voter {
        /// Which.
        node: u64,
    },
    /// It does not vote.
    #[error("node {node} has no vote; promote it first: metalmesh cluster promote {node}")]
    Learner {
        /// Which.
        node: u64,
    },
    /// It has not caught up.
    #[error(
        "node {node} is {behind} entries behind, {PROMOTE_LAG_ENTRIES_MAX} are allowed; wait \
         until it has caught up: metalmesh cluster status"
    )]
    Lags {
        /// Which.
        node: u64,
        /// How many entries.
        behind: u64,
    },
    /// It does not answer.
    #[error("node {node} was not heard for {unheard_ms} ms; start it and try again")]
    Silent {
        /// Which.
        node: u64,
        /// For how long, milliseconds.
        unheard_ms: u64,
    },
    /// It leads.
    #[error(
        "node {node} leads; hand leadership over first: metalmesh cluster transfer-leader NODE"
    )]
    Leads {
        /// Which.
        node: u64,
    },
    /// The last voter.
    #[error("node {node} is the only voter; promote another node first")]
    OnlyVoter {
        /// Which.
        node: u64,
    },
    /// The rest could not write.
    #[error(
        "without node {node} only {reachable} of {voters} voters would be reachable, {needed} are \
         needed to write; bring the others back first, or add and promote a node"
    )]
    LosesQuorum {
        /// Which.
        node: u64,
        /// Voters left that answer.
        reachable: usize,
        /// Voters left.
        voters: usize,
        /// Their majority.
        needed: usize,
    },
    /// Another change is not finished.
    #[error("another change of the membership is not finished; try again")]
    InProgress,
    /// The new leader was not elected in time.
    #[error("node {node} did not take over within {within_ms} ms; see: metalmesh cluster status")]
    NotTaken {
        /// Which.
        node: u64,
        /// The limit, milliseconds.
        within_ms: u64,
    },
    /// The change could not be carried out.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The permit covers no change of the members.
    #[error("the permit covers no change of the members")]
    NotCovered,
}

/// A member as the node that is asked sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// Its number.
    pub node: u64,
    /// Where peers reach it.
    pub address: String,
    /// Whether it votes; a learner does not.
    pub is_voter: bool,
    /// Whether it leads.
    pub is_leader: bool,
    /// Last entry that it is known to have; the leader knows, others do not.
    pub matched: Option<u64>,
    /// Milliseconds since it was heard last; the leader knows, others do not.
    pub heard_ms: Option<u64>,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// Who leads, if known.
    pub leader: Option<u64>,
    /// The term.
    pub term: u64,
    /// Index of the last entry in the log.
    pub last_log: u64,
    /// All members.
    pub members: Vec<MemberState>,
}

impl ClusterView {
    /// Whether `change` makes sense and leaves a cluster that can write.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, change: &MemberChange) -> Result<(), MembershipError> {
        check(change, &self.members, self.last_log)
    }
}

/// Whether `change` makes sense and leaves a cluster that can write.
pub(crate) fn check(
    change: &MemberChange,
    members: &[MemberState],
    last: u64,
) -> Result<(), MembershipError> {
    let find = |node: u64| {
        let found = members.iter().find(|m| m.node == node);
        found.ok_or(MembershipError::Unknown { node })
    };
    match change {
        MemberChange::Add { node, .. } => match find(*node) {
            Ok(_) => Err(MembershipError::Taken { node: *node }),
            Err(_) => Ok(()),
        },
        MemberChange::Promote { node } => {
            let member = find(*node)?;
            if member.is_voter {
                return Err(MembershipError::Voter { node: *node });
            }
            heard(member)?;
            let behind = last.saturating_sub(member.matched.unwrap_or(0));
            if behind > PROMOTE_LAG_ENTRIES_MAX {
                let node = *node;
                return Err(MembershipError::Lags { node, behind });
            }
            Ok(())
        }
        MemberChange::Lead { node } => {
            let member = find(*node)?;
            if !member.is_voter {
                return Err(MembershipError::Learner { node: *node });
            }
            heard(member)
        }
        MemberChange::Remove { node } => removable(find(*node)?, members),
        MemberChange::Move { node, .. } => find(*node).map(drop),
    }
}

fn heard(member: &MemberState) -> Result<(), MembershipError> {
    if is_reachable(member) {
        return Ok(());
    }
    Err(MembershipError::Silent {
        node: member.node,
        unheard_ms: member.heard_ms.unwrap_or(u64::MAX),
    })
}

fn is_reachable(member: &MemberState) -> bool {
    let within = u64::try_from(HEARD_WITHIN.as_millis()).unwrap_or(u64::MAX);
    member.heard_ms.is_some_and(|ms| ms <= within)
}

/// Both the old voters and the new ones must be able to agree on the removal.
fn removable(member: &MemberState, members: &[MemberState]) -> Result<(), MembershipError> {
    let node = member.node;
    if !member.is_voter {
        return Ok(());
    }
    let voters: Vec<_> = members.iter().filter(|m| m.is_voter).collect();
    if voters.len() == 1 {
        return Err(MembershipError::OnlyVoter { node });
    }
    if member.is_leader {
        return Err(MembershipError::Leads { node });
    }
    let left: Vec<_> = voters.iter().copied().filter(|m| m.node != node).collect();
    let lacks = |of: &[&MemberState]| {
        let reachable = of.iter().filter(|m| is_reachable(m)).count();
        let needed = of.len() / 2 + 1;
        (reachable < needed).then_some((reachable, needed))
    };
    if let Some((reachable, needed)) = lacks(&left) {
        return Err(MembershipError::LosesQuorum {
            node,
            reachable,
            voters: left.len(),
            needed,
        });
    }
    match lacks(&voters) {
        Some(_) => Err(StoreError::NoQuorum.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u64, is_voter: bool, heard_ms: u64) -> MemberState {
        MemberState {
            node,
            address: String::new(),
            is_voter,
            is_leader: node == 1,
            matched: Some(100),
            heard_ms: Some(heard_ms),
        }
    }

    fn refused(change: &MemberChange, members: &[MemberState], last: u64) -> String {
        match check(change, members, last) {
            Ok(()) => "allowed".to_owned(),
            Err(error) => format!("{error:?}")
                .split([' ', '{'])
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    #[test]
    fn changes_that_make_no_sense_are_refused() {
        use MemberChange::{Add, Lead, Promote, Remove};
        let gone = 60_000;
        let healthy = [member(1, true, 0), member(2, true, 9), member(3, true, 9)];
        let one_gone = [
            member(1, true, 0),
            member(2, true, 9),
            member(3, true, gone),
        ];
        let pair = [member(1, true, 0), member(2, true, gone)];
        let alone = [
            member(1, true, 0),
            member(4, false, 9),
            member(5, false, gone),
        ];
        let address = String::new;
        for (case, change, members, last, expected) in [
            ("a third", Remove { node: 3 }, &healthy[..], 100, "allowed"),
            (
                "the dead one",
                Remove { node: 3 },
                &one_gone,
                100,
                "allowed",
            ),
            (
                "the live one",
                Remove { node: 2 },
                &one_gone,
                100,
                "LosesQuorum",
            ),
            ("the leader", Remove { node: 1 }, &healthy, 100, "Leads"),
            ("the last", Remove { node: 1 }, &alone, 100, "OnlyVoter"),
            (
                "one of a broken pair",
                Remove { node: 2 },
                &pair,
                100,
                "Store(NoQuorum)",
            ),
            ("a learner", Remove { node: 5 }, &alone, 100, "allowed"),
            ("nobody", Remove { node: 9 }, &alone, 100, "Unknown"),
            ("caught up", Promote { node: 4 }, &alone, 1100, "allowed"),
            ("lags", Promote { node: 4 }, &alone, 1101, "Lags"),
            ("silent", Promote { node: 5 }, &alone, 100, "Silent"),
            ("a voter", Promote { node: 2 }, &healthy, 100, "Voter"),
            ("to a learner", Lead { node: 4 }, &alone, 100, "Learner"),
            ("to a dead one", Lead { node: 3 }, &one_gone, 100, "Silent"),
            ("to another", Lead { node: 2 }, &one_gone, 100, "allowed"),
            (
                "taken",
                Add {
                    node: 2,
                    address: address(),
                },
                &healthy,
                100,
                "Taken",
            ),
            (
                "new",
                Add {
                    node: 6,
                    address: address(),
                },
                &healthy,
                100,
                "allowed",
            ),
        ] {
            assert_eq!(refused(&change, members, last), expected, "{case}");
        }
    }
}
