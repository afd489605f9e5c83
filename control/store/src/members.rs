//! Changes of the membership: joining, promotion, removal, new addresses, and transfer of
//! leadership.
//!
//! A change that would leave the cluster without a quorum is refused before anything is done; see
//! [`membership`](crate::membership) for the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, Fatal, RaftError};
use openraft::{BasicNode, ChangeMembers, Instant, RaftMetrics};

use crate::config::PROPOSE_TIMEOUT;
use crate::error::StoreError;
use crate::machine::StateMachine;
use crate::membership::{
    ClusterView, MemberChange, MemberState, MembershipError, check, successor,
};
use crate::raft_types::TypeConfig;
use crate::store::Store;

/// Time limit for the new leader to be elected after leadership was handed to it. Beyond it the
/// transfer is reported as not taken; it may still happen.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the transfer of leadership before this node stops. Beyond it the node stops, and the
/// others elect a leader.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);

impl<M: StateMachine> Store<M> {
    /// The cluster as this node sees it. Only the leader knows the progress of the others: see
    /// [`cluster_view`](Self::cluster_view).
    pub fn cluster_view_here(&self) -> ClusterView {
        let metrics = self.0.raft.metrics();
        let metrics = metrics.borrow_watched();
        ClusterView {
            leader: metrics.current_leader,
            term: metrics.current_term,
            last_log: metrics.last_log_index.unwrap_or(0),
            members: members(&metrics),
        }
    }

    /// All members. On a follower the fields that only the leader knows are `None`.
    pub fn members(&self) -> Vec<MemberState> {
        let metrics = self.0.raft.metrics();
        members(&metrics.borrow_watched())
    }

    /// Changes the membership; this node must lead. If it dies during a change of the voters, the
    /// cluster may stay in a joint configuration, which the next change ends.
    ///
    /// # Errors
    /// See [`MembershipError`]; [`StoreError::NotLeader`] if this node does not lead.
    pub async fn change_members_here(&self, change: &MemberChange) -> Result<(), MembershipError> {
        let (members, last) = {
            let metrics = self.0.raft.metrics();
            let metrics = metrics.borrow_watched();
            if metrics.current_leader != Some(metrics.id) {
                let leader = metrics.current_leader;
                return Err(StoreError::NotLeader { leader }.into());
            }
            (members(&metrics), metrics.last_log_index.unwrap_or(0))
        };
        // Only the leader can judge: it alone knows which members answer and how far each has come.
        // openraft itself would accept a change that leaves no quorum.
        check(change, &members, last)?;
        let changed = tokio::time::timeout(PROPOSE_TIMEOUT, self.carry_out(change, &members));
        // The configuration entry may be in the leader's log, where it takes effect at once, before
        // it is committed. After a timeout it may still be committed, by this leader or the next.
        changed.await.unwrap_or_else(|_| {
            let reason = "no majority confirmed it in time".into();
            Err(StoreError::OutcomeUnknown { reason }.into())
        })
    }

    /// Transfers leadership before this node stops, so that nobody waits for an election. Returns the
    /// new leader. `None` means that this node does not lead, or that nobody took over in time.
    pub async fn leave_leadership(&self) -> Option<u64> {
        if !self.is_leader() {
            return None;
        }
        let node = successor(&self.members())?;
        let change = MemberChange::Lead { node };
        match tokio::time::timeout(LEAVE_TIMEOUT, self.change_members_here(&change)).await {
            Ok(Ok(())) => Some(node),
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "leadership was not handed over before the stop");
                None
            }
            Err(_) => {
                tracing::warn!(
                    node,
                    "the node did not take leadership over before the stop"
                );
                None
            }
        }
    }

    async fn carry_out(
        &self,
        change: &MemberChange,
        members: &[MemberState],
    ) -> Result<(), MembershipError> {
        let raft = &self.0.raft;
        let changed = match change {
            MemberChange::Lead { node } => return self.hand_over(*node).await,
            // `false`: does not wait until the learner has caught up, which may take a snapshot. It
            // has no vote until it is promoted, so a slow or dead one costs no quorum.
            MemberChange::Add { node, address } => {
                raft.add_learner(*node, BasicNode::new(address), false)
                    .await
            }
            MemberChange::Promote { node } => {
                let voters = ChangeMembers::AddVoterIds(BTreeSet::from([*node]));
                // openraft writes two entries. Between them the configuration is joint: a majority
                // of the old and of the new voters must agree. openraft does not complete it after
                // the death of the leader in between; the next change of the membership does.
                raft.change_membership(voters, true).await
            }
            MemberChange::Remove { node } => {
                // `false`: the removed voter does not stay as a learner, to which the leader would
                // replicate for ever. A learner can be dropped directly: it counts for no quorum.
                if members
                    .iter()
                    .any(|member| member.node == *node && member.is_voter)
                {
                    let voters = ChangeMembers::RemoveVoters(BTreeSet::from([*node]));
                    raft.change_membership(voters, false).await
                } else {
                    let nodes = ChangeMembers::RemoveNodes(BTreeSet::from([*node]));
                    raft.change_membership(nodes, false).await
                }
            }
            MemberChange::Move { node, address } => {
                let nodes = BTreeMap::from([(*node, BasicNode::new(address))]);
                raft.change_membership(ChangeMembers::SetNodes(nodes), true)
                    .await
            }
        };
        changed.map(drop).map_err(change_error)
    }

    /// Transfers leadership to the voter `to` and waits until this node sees it lead.
    async fn hand_over(&self, to: u64) -> Result<(), MembershipError> {
        let raft = &self.0.raft;
        if self.is_leader() && to == self.node_id() {
            return Ok(());
        }
        raft.trigger()
            .transfer_leader(to)
            .await
            .map_err(fatal_error)?;
        // The call only sends the message: the new leader must still win its election, and this
        // node must hear of it, or the caller would be told of a transfer that never happened.
        let wait = raft.wait(Some(TRANSFER_TIMEOUT));
        let taken = wait.metrics(
            |metrics| metrics.current_leader == Some(to),
            "transfer of leadership",
        );
        let within_ms = u64::try_from(TRANSFER_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        taken
            .await
            .map(drop)
            .map_err(|_| MembershipError::NotTaken {
                node: to,
                within_ms,
            })
    }
}

fn members(metrics: &RaftMetrics<TypeConfig>) -> Vec<MemberState> {
    let membership = metrics.membership_config.membership();
    let voters: BTreeSet<u64> = membership.voter_ids().collect();
    let state = |(node, at): (&u64, &BasicNode)| {
        let is_self = *node == metrics.id;
        let matched = match &metrics.replication {
            Some(_) if is_self => metrics.last_log_index,
            Some(all) => all.get(node).and_then(|id| id.map(|id| id.index)),
            None => None,
        };
        let heard_ms = match &metrics.heartbeat {
            Some(_) if is_self => Some(0),
            Some(all) => all
                .get(node)
                .and_then(Option::as_ref)
                .map(|at| u64::try_from(at.into_inner().elapsed().as_millis()).unwrap_or(u64::MAX)),
            None => None,
        };
        MemberState {
            node: *node,
            address: at.addr.clone(),
            is_voter: voters.contains(node),
            is_leader: metrics.current_leader == Some(*node),
            matched,
            heard_ms,
        }
    };
    membership.nodes().map(state).collect()
}

fn change_error(error: RaftError<TypeConfig, ClientWriteError<TypeConfig>>) -> MembershipError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => StoreError::NotLeader {
            leader: forward.leader_id,
        }
        .into(),
        RaftError::APIError(ClientWriteError::ChangeMembershipError(
            ChangeMembershipError::InProgress(_),
        )) => MembershipError::InProgress,
        RaftError::APIError(ClientWriteError::ChangeMembershipError(
            ChangeMembershipError::LearnerNotFound(missing),
        )) => MembershipError::Unknown {
            node: missing.node_id,
        },
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) => {
            // The next leader may have received the entry and still commit it.
            let reason = "leadership was lost while the change was on its way".into();
            StoreError::OutcomeUnknown { reason }.into()
        }
        RaftError::APIError(other) => StoreError::Fatal(other.to_string()).into(),
        RaftError::Fatal(fatal) => fatal_error(fatal),
    }
}

fn fatal_error(fatal: Fatal<TypeConfig>) -> MembershipError {
    match fatal {
        Fatal::Stopped => StoreError::ShutDown.into(),
        fatal => StoreError::Fatal(fatal.to_string()).into(),
    }
}
