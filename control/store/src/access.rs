//! Writing and reading on any node: here when this node leads, else through the leader.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{Fatal, LinearizableReadError, RaftError};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::codec;
use crate::config::{PROPOSE_TIMEOUT, READ_TIMEOUT};
use crate::error::{ProposeError, StoreError};
use crate::forward::{Answer, Errand, PASSED_MAX, Passed};
use crate::machine::StateMachine;
use crate::membership::{ClusterView, MemberChange, MembershipError};
use crate::proposer::{COMMAND_BYTES_MAX, Done, PROPOSALS_MAX, Proposal};
use crate::raft_types::TypeConfig;
use crate::rounds::{self, ROUND_PATIENCE, Readers};
use crate::store::Store;
use crate::watch::Revision;

/// How long a follower waits to have what the leader has acknowledged already.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the leader may take to say how it sees the cluster.
const VIEW_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause before the next try when the leader is known but does not lead.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// What an earlier try of the same command left open.
#[derive(Debug, Default)]
struct Doubt(Option<StoreError>);

impl Doubt {
    /// Keeps the first refusal that may have had an effect.
    fn note(&mut self, refused: &StoreError) {
        if matches!(refused, StoreError::OutcomeUnknown { .. }) {
            self.0.get_or_insert_with(|| refused.clone());
        }
    }

    /// The error of all tries: that the last one did nothing does not say so of the others.
    fn over(&mut self, last: StoreError) -> StoreError {
        self.0.take().unwrap_or(last)
    }
}

impl<M: StateMachine> Store<M> {
    /// Has `command` applied, on any node. Success means: durable on a majority and applied here,
    /// with the record of the call that `permit` was given for.
    ///
    /// # Errors
    /// [`ProposeError::Rejected`] when the state refused it and nothing changed; otherwise see
    /// [`StoreError`].
    pub async fn propose(
        &self,
        permit: &M::Permit,
        command: &M::Command,
    ) -> Result<M::Reply, ProposeError<M::Rejection>> {
        self.running()?;
        M::may_change(permit, command).map_err(ProposeError::Rejected)?;
        let recorded = self.read_local(|state| state.recorded(permit, command))?;
        let applied = self.propose_as_it_is(recorded.as_ref().unwrap_or(command));
        let reply = applied.await?;
        if recorded.is_some() {
            M::was_recorded(permit);
        }
        Ok(reply)
    }

    async fn propose_as_it_is(
        &self,
        command: &M::Command,
    ) -> Result<M::Reply, ProposeError<M::Rejection>> {
        let original = command;
        let encoded = codec::encode(command).map_err(|e| StoreError::Fatal(e.to_string()))?;
        // The log keeps it: without the room that it grew by.
        let command = Bytes::from(encoded.into_boxed_slice());
        if command.len() > COMMAND_BYTES_MAX {
            let (bytes, max) = (command.len(), COMMAND_BYTES_MAX);
            return Err(StoreError::TooLarge { bytes, max }.into());
        }
        self.running()?;
        self.read_local(|state| state.enabled(original))?
            .map_err(ProposeError::Rejected)?;
        // Only what certainly had no effect is tried again, or what has none the second time.
        let may_repeat = |error: &StoreError| match error {
            StoreError::NotLeader { .. } => true,
            StoreError::OutcomeUnknown { .. } => M::is_repeatable(original),
            _ => false,
        };
        let deadline = Instant::now() + PROPOSE_TIMEOUT;
        let mut doubt = Doubt::default();
        loop {
            let refused = match self.propose_once(&command).await {
                Err(ProposeError::Store(refused)) => refused,
                done => return done,
            };
            if !may_repeat(&refused) {
                return Err(doubt.over(refused).into());
            }
            doubt.note(&refused);
            let led = self.wait_for_leader(deadline, refused).await;
            led.map_err(|refused| doubt.over(refused))?;
        }
    }

    /// One try, here or at the leader.
    async fn propose_once(&self, command: &Bytes) -> Result<M::Reply, ProposeError<M::Rejection>> {
        self.running()?;
        if self.is_leader() {
            return self.propose_here(command.clone()).await.map(|it| it.reply);
        }
        match self.pass_on(Passed::Propose(command.clone())).await? {
            Answer::Applied { index, result } => {
                self.catch_up(index).await;
                decode_result::<M>(result)
            }
            _ => Err(unexpected().into()),
        }
    }

    /// Has an encoded command applied by this node as the leader.
    pub(crate) async fn propose_here(
        &self,
        command: Bytes,
    ) -> Result<Done<M>, ProposeError<M::Rejection>> {
        let (answer, wait) = oneshot::channel();
        let proposal = Proposal { command, answer };
        self.0.proposals.try_send(proposal).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy {
                waiting: PROPOSALS_MAX,
            },
            mpsc::error::TrySendError::Closed(_) => StoreError::ShutDown,
        })?;
        match timeout(PROPOSE_TIMEOUT, wait).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                let reason = "this node stopped while the write was on its way".into();
                Err(StoreError::OutcomeUnknown { reason }.into())
            }
            Err(_) => {
                let reason = "no majority confirmed it in time".into();
                Err(StoreError::OutcomeUnknown { reason }.into())
            }
        }
    }

    /// Reads a state that contains every write acknowledged before the call, on any node.
    ///
    /// `read` runs under a lock that holds up writes: it should look and copy, not compute.
    ///
    /// # Errors
    /// When no majority of the cluster answers.
    pub async fn read<T>(&self, read: impl FnOnce(&M) -> T) -> Result<T, StoreError> {
        self.read_versioned(|state, _| read(state)).await
    }

    /// Like [`read`](Self::read), with the revision of what is read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_versioned<T>(
        &self,
        read: impl FnOnce(&M, Revision) -> T,
    ) -> Result<T, StoreError> {
        self.running()?;
        #[cfg(feature = "sim")]
        if crate::sim::has(crate::sim::Bug::SkippedReadIndex) {
            return self.read_local_versioned(read);
        }
        match timeout(READ_TIMEOUT, self.join_readers()).await {
            Ok(Ok(())) => self.read_local_versioned(read),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::NoQuorum),
        }
    }

    /// A leader's readers wait with those of its followers at once; they need not find out first
    /// who leads.
    async fn join_readers(&self) -> Result<(), StoreError> {
        if self.is_leader() {
            match self.0.confirmations.join().await {
                Ok(_) => return Ok(()),
                Err(StoreError::NotLeader { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.0.reads.join().await
    }

    /// Returns when this node has everything that was acknowledged before the call. Readers share
    /// it: see `rounds`.
    pub(crate) async fn barrier(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + READ_TIMEOUT;
        loop {
            let refused = if self.is_leader() {
                match self.0.confirmations.join().await {
                    Ok(_) => return Ok(()),
                    Err(refused @ StoreError::NotLeader { .. }) => refused,
                    Err(error) => return Err(error),
                }
            } else {
                match self.pass_on(Passed::Barrier).await {
                    Ok(Answer::ReadAt(index)) => {
                        let wait = self.0.raft.wait(Some(READ_TIMEOUT));
                        let applied = wait.applied_index_at_least(Some(index), "read").await;
                        self.running()?;
                        return applied.map(drop).map_err(|_| StoreError::NoQuorum);
                    }
                    Ok(_) => return Err(unexpected()),
                    Err(refused @ StoreError::NotLeader { .. }) => refused,
                    Err(error) => return Err(error),
                }
            };
            self.wait_for_leader(deadline, refused).await?;
        }
    }

    /// The entry up to which a read must have applied, confirmed by a majority. This node's
    /// readers and those of its followers share it.
    pub(crate) async fn barrier_here(&self) -> Result<u64, StoreError> {
        let confirmed = self.0.raft.ensure_linearizable(ReadPolicy::ReadIndex);
        confirmed.await.map(|id| id.index()).map_err(read_error)
    }

    /// Serves who waits to read, here and on followers, until the store stops.
    pub(crate) fn serve_reads(&self, on: &Handle, readers: Readers<()>, confirmed: Readers<u64>) {
        let stop = &self.0.stop;
        // Who serves the readers must not keep the store.
        let weak = Arc::downgrade(&self.0);
        let barrier = move || {
            let store = Self(weak.upgrade()?);
            Some(async move { within(store.barrier()).await })
        };
        on.spawn(rounds::serve(
            readers,
            stop.clone(),
            ROUND_PATIENCE,
            barrier,
        ));
        let weak = Arc::downgrade(&self.0);
        let confirm = move || {
            let store = Self(weak.upgrade()?);
            Some(async move { within(store.barrier_here()).await })
        };
        on.spawn(rounds::serve(
            confirmed,
            stop.clone(),
            ROUND_PATIENCE,
            confirm,
        ));
    }

    /// Changes the membership, on any node. A change that was begun is finished by the next
    /// leader.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn change_members(
        &self,
        permit: &M::Permit,
        change: &MemberChange,
    ) -> Result<(), MembershipError> {
        if !M::may_change_members(permit) {
            return Err(MembershipError::NotCovered);
        }
        let deadline = Instant::now() + PROPOSE_TIMEOUT;
        loop {
            self.running()?;
            let changed = if self.is_leader() {
                self.change_members_here(change).await
            } else {
                match self.pass_on(Passed::Members(change.clone())).await {
                    Ok(Answer::Changed(changed)) => changed,
                    Ok(_) => return Err(unexpected().into()),
                    Err(error) => Err(error.into()),
                }
            };
            match changed {
                Err(MembershipError::Store(refused @ StoreError::NotLeader { .. })) => {
                    self.wait_for_leader(deadline, refused).await?;
                }
                changed => return changed,
            }
        }
    }

    /// The cluster as its leader sees it, or as this node does when no leader answers.
    pub async fn cluster_view(&self) -> ClusterView {
        if !self.is_leader() {
            let asked = timeout(VIEW_TIMEOUT, self.pass_on(Passed::View)).await;
            if let Ok(Ok(Answer::View(view))) = asked {
                return view;
            }
        }
        self.cluster_view_here()
    }

    /// What this node does for a follower; it must lead.
    pub(crate) async fn carry_out_for(&self, what: Passed) -> Answer {
        let failed = |error: StoreError| Answer::Failed(error);
        match what {
            Passed::Propose(command) => match self.propose_here(command).await {
                Ok(Done { reply, index }) => match codec::encode(&reply) {
                    Ok(reply) => Answer::Applied {
                        index,
                        result: Ok(reply.into()),
                    },
                    Err(_) => failed(unexpected()),
                },
                Err(ProposeError::Rejected(rejection)) => match codec::encode(&rejection) {
                    Ok(rejection) => Answer::Applied {
                        index: 0,
                        result: Err(rejection.into()),
                    },
                    Err(_) => failed(unexpected()),
                },
                Err(ProposeError::Store(error)) => failed(error),
            },
            Passed::Barrier => match timeout(READ_TIMEOUT, self.0.confirmations.join()).await {
                Ok(Ok(index)) => Answer::ReadAt(index),
                Ok(Err(error)) => failed(error),
                Err(_) => failed(StoreError::NoQuorum),
            },
            Passed::View => Answer::View(self.cluster_view_here()),
            Passed::Members(change) => Answer::Changed(self.change_members_here(&change).await),
        }
    }

    async fn pass_on(&self, what: Passed) -> Result<Answer, StoreError> {
        let (answer, wait) = oneshot::channel();
        let has_effect = what.has_effect();
        let errand = Errand { what, answer };
        self.0.errands.try_send(errand).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy {
                waiting: PASSED_MAX,
            },
            mpsc::error::TrySendError::Closed(_) => StoreError::ShutDown,
        })?;
        match timeout(PROPOSE_TIMEOUT, wait).await {
            Ok(Ok(Answer::Failed(error))) => Err(error),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) if !has_effect => Err(StoreError::NoQuorum),
            Ok(Err(_)) => {
                let reason = "this node stopped while the write was on its way".into();
                Err(StoreError::OutcomeUnknown { reason })
            }
            Err(_) => {
                let reason = "the leader did not answer in time".into();
                Err(StoreError::OutcomeUnknown { reason })
            }
        }
    }

    /// Whoever wrote through this node may look at what it has applied next.
    async fn catch_up(&self, index: u64) {
        let wait = self.0.raft.wait(Some(CATCH_UP_TIMEOUT));
        // A node that lags behind has acknowledged nothing wrong: a linearizable read still waits.
        drop(wait.applied_index_at_least(Some(index), "own write").await);
    }

    /// Until somebody leads, or `refused` at the deadline.
    async fn wait_for_leader(
        &self,
        deadline: Instant,
        refused: StoreError,
    ) -> Result<(), StoreError> {
        if Instant::now() >= deadline {
            return Err(refused);
        }
        let mut metrics = self.0.raft.server_metrics();
        let pause = Instant::now() + RETRY_PAUSE;
        tokio::time::sleep_until(pause.min(deadline)).await;
        let led = async {
            while metrics.borrow_and_update().current_leader.is_none() {
                if metrics.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout_at(deadline, led).await.map_err(|_| refused)
    }
}

fn decode_result<M: StateMachine>(
    result: Result<Bytes, Bytes>,
) -> Result<M::Reply, ProposeError<M::Rejection>> {
    // The command was applied, but nobody can say what it answered.
    let unreadable = |_| {
        let reason = "the leader's answer cannot be read; it may be of another version".into();
        ProposeError::Store(StoreError::OutcomeUnknown { reason })
    };
    match result {
        Ok(reply) => codec::decode(&reply).map_err(unreadable),
        Err(rejection) => {
            let rejection = codec::decode(&rejection).map_err(unreadable)?;
            Err(ProposeError::Rejected(rejection))
        }
    }
}

async fn within<T>(round: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let answered = timeout(READ_TIMEOUT, round).await;
    answered.unwrap_or(Err(StoreError::NoQuorum))
}

fn unexpected() -> StoreError {
    StoreError::Fatal("the leader answered something else than was asked".to_owned())
}

fn read_error(error: RaftError<TypeConfig, LinearizableReadError<TypeConfig>>) -> StoreError {
    match error {
        RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)) => {
            StoreError::NotLeader {
                leader: forward.leader_id,
            }
        }
        RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => StoreError::NoQuorum,
        RaftError::Fatal(Fatal::Stopped) => StoreError::ShutDown,
        RaftError::Fatal(fatal) => StoreError::Fatal(fatal.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_may_have_been_done_is_never_said_to_have_done_nothing() {
        let unknown = |reason: &'static str| StoreError::OutcomeUnknown {
            reason: reason.into(),
        };
        let harmless = [
            StoreError::Busy { waiting: 1 },
            StoreError::NotLeader { leader: None },
            StoreError::ShutDown,
        ];
        for last in harmless {
            let mut doubt = Doubt::default();
            doubt.note(&StoreError::NotLeader { leader: None });
            assert_eq!(doubt.over(last.clone()), last);
            doubt.note(&unknown("first"));
            doubt.note(&unknown("second"));
            assert_eq!(doubt.over(last), unknown("first"));
        }
    }
}
