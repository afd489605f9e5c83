//! Rules for changes of the membership: a change must make sense and leave a quorum. Pure
//! functions; the store carries the changes out.

mod change;
mod view;

use std::cmp::Reverse;
use std::time::Duration;

use crate::error::StoreError;

pub use change::{MemberChange, MembershipError};
pub use view::{ClusterView, MemberState};

/// Most entries that a learner may be behind the leader when it is promoted. Beyond it the
/// promotion is refused: a new voter that lags does not help to commit until it has caught up.
pub const PROMOTE_LAG_ENTRIES_MAX: u64 = 1000;
/// Longest time since the last heartbeat answer of a reachable member: several heartbeats and an
/// election. A member that is silent for longer does not count for the quorum.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// Checks that `change` makes sense and leaves a cluster that can write. `last` is the index of the
/// leader's last entry.
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
            // A new voter raises the quorum. One that is dead or lags could stop all writes: with
            // two voters both must acknowledge.
            heard(member)?;
            let behind = last.saturating_sub(member.matched.unwrap_or(0));
            if behind > PROMOTE_LAG_ENTRIES_MAX {
                let node = *node;
                return Err(MembershipError::Lags { node, behind });
            }
            Ok(())
        }
        // openraft takes no writes during a transfer. A transfer to a dead voter would block them
        // until the next election.
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

/// The voter that leads when the leader stops: of those that answer, the one that has most of the log.
/// `None` means that no other voter answers.
pub(crate) fn successor(members: &[MemberState]) -> Option<u64> {
    let others = members
        .iter()
        .filter(|member| member.is_voter && !member.is_leader && is_reachable(member));
    let best = others.max_by_key(|member| (member.matched, Reverse(member.node)));
    best.map(|member| member.node)
}

/// Voters that may still fail with a majority left to write. A voter that does not answer has failed
/// already: it counts for the majority that is needed, and not for those that are there.
fn spare_voters(members: &[MemberState]) -> usize {
    let voters: Vec<_> = members.iter().filter(|member| member.is_voter).collect();
    let reachable = voters.iter().filter(|voter| is_reachable(voter)).count();
    reachable.saturating_sub(voters.len() / 2 + 1)
}

/// Checks that `member` answers.
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

/// Checks that `member` can be removed.
fn removable(member: &MemberState, members: &[MemberState]) -> Result<(), MembershipError> {
    let node = member.node;
    if !member.is_voter {
        return Ok(());
    }
    let voters: Vec<_> = members.iter().filter(|m| m.is_voter).collect();
    if voters.len() == 1 {
        return Err(MembershipError::OnlyVoter { node });
    }
    // A leader that removes itself steps down as soon as the change is committed. An explicit
    // transfer before it keeps the time without a leader short.
    if member.is_leader {
        return Err(MembershipError::Leads { node });
    }
    let left: Vec<_> = voters.iter().copied().filter(|m| m.node != node).collect();
    // The removal is a joint change: majorities of the old and of the new voters must acknowledge
    // it. Both are checked: in a joint configuration without both majorities no entry commits, so
    // that no other change could repair it.
    let lacks = |voters: &[&MemberState]| {
        let reachable = voters.iter().filter(|voter| is_reachable(voter)).count();
        let needed = voters.len() / 2 + 1;
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
    fn the_voter_that_has_most_takes_over() {
        let gone = 60_000;
        let behind = MemberState {
            matched: Some(99),
            ..member(2, true, 9)
        };
        let follower = |node| MemberState {
            heard_ms: None,
            matched: None,
            ..member(node, true, 0)
        };
        for (case, members, expected) in [
            (
                "alike",
                vec![member(1, true, 0), member(3, true, 9), member(2, true, 9)],
                Some(2),
            ),
            (
                "one is behind",
                vec![member(1, true, 0), behind, member(3, true, 9)],
                Some(3),
            ),
            (
                "one is gone",
                vec![
                    member(1, true, 0),
                    member(2, true, gone),
                    member(3, true, 9),
                ],
                Some(3),
            ),
            (
                "a learner has no vote",
                vec![member(1, true, 0), member(2, false, 9)],
                None,
            ),
            ("alone", vec![member(1, true, 0)], None),
            (
                "a follower knows of nobody",
                vec![follower(2), follower(3)],
                None,
            ),
        ] {
            assert_eq!(successor(&members), expected, "{case}");
        }
    }

    #[test]
    fn voters_that_do_not_answer_have_failed_already() {
        let gone = 60_000;
        let unheard = |node| MemberState {
            heard_ms: None,
            ..member(node, true, 0)
        };
        let voters = |heard: &[u64]| {
            let voters = (1..).zip(heard);
            let voters = voters.map(|(node, heard_ms)| member(node, true, *heard_ms));
            voters.collect::<Vec<_>>()
        };
        let with_learner = [voters(&[0, 9, gone]), vec![member(4, false, 9)]].concat();
        for (case, members, expected) in [
            ("one of one", voters(&[0]), 0),
            ("two of two", voters(&[0, 9]), 0),
            ("three of three", voters(&[0, 9, 9]), 1),
            ("two of three", voters(&[0, 9, gone]), 0),
            ("one of three", voters(&[0, gone, gone]), 0),
            ("four of four", voters(&[0, 9, 9, 9]), 1),
            ("five of five", voters(&[0, 9, 9, 9, 9]), 2),
            ("four of five", voters(&[0, 9, 9, 9, gone]), 1),
            ("three of five", voters(&[0, 9, 9, gone, gone]), 0),
            ("a learner is no voter", with_learner, 0),
            (
                "one was never heard",
                vec![member(1, true, 0), member(2, true, 9), unheard(3)],
                0,
            ),
            (
                "a follower has heard nobody",
                vec![unheard(1), unheard(2), unheard(3)],
                0,
            ),
        ] {
            assert_eq!(spare_voters(&members), expected, "{case}");
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
