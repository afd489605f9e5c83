//! Writes and membership changes on any node: the leader serves its own callers, a follower
//! forwards to the leader.

use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::codec;
use crate::config::{PROPOSE_TIMEOUT, READ_TIMEOUT};
use crate::error::{ProposeError, StoreError};
use crate::forward::{FORWARDS_MAX, ForwardedAnswer, ForwardedRequest, PendingForward};
use crate::machine::StateMachine;
use crate::membership::{ClusterView, MemberChange, MembershipError};
use crate::proposal::{AppliedCommand, Proposal};
use crate::proposer::{COMMAND_BYTES_MAX, PROPOSALS_MAX};
use crate::store::Store;

/// Time limit for a follower to apply a write that the leader has acknowledged already. Beyond it
/// the write is acknowledged nevertheless.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the leader to answer with its view of the cluster. Beyond it the caller gets the
/// view of its own node.
const VIEW_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause before each further try. Without it a node that still names a leader that has stepped down
/// would try in a busy loop.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The first try of a command whose outcome is unknown, if there was one.
#[derive(Debug, Default)]
struct UnknownOutcome(Option<StoreError>);

impl UnknownOutcome {
    /// Keeps the first error that leaves open if the command took effect.
    fn note(&mut self, refused: &StoreError) {
        if matches!(refused, StoreError::OutcomeUnknown { .. }) {
            self.0.get_or_insert_with(|| refused.clone());
        }
    }

    /// The error of all tries together: that the last one did nothing does not prove that the
    /// earlier ones did nothing.
    fn combine(&mut self, last: StoreError) -> StoreError {
        self.0.take().unwrap_or(last)
    }
}

impl<M: StateMachine> Store<M> {
    /// Applies `command`, on any node. Success means: durable on a majority and applied on this
    /// node, together with the audit record of the call that `permit` was issued for.
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
        // Before anything else: a permit that does not cover the command is a bug of the handler,
        // and must not reach the log, whatever the state would say.
        M::may_change(permit, command).map_err(ProposeError::Rejected)?;
        // The audit record is a part of the command, in one log entry: an effect without its record
        // cannot exist, whichever node dies when.
        let recorded = self.read_local(|state| state.recorded(permit, command))?;
        let applied = self.propose_encoded(recorded.as_ref().unwrap_or(command));
        let reply = applied.await?;
        // Only after success: a command that failed has recorded nothing, and the next command of
        // the same call must carry the record.
        if recorded.is_some() {
            M::was_recorded(permit);
        }
        Ok(reply)
    }

    async fn propose_encoded(
        &self,
        command: &M::Command,
    ) -> Result<M::Reply, ProposeError<M::Rejection>> {
        let original = command;
        let encoded = codec::encode(command).map_err(|e| StoreError::Fatal(e.to_string()))?;
        // The log keeps these bytes in memory, so the spare capacity of the vector is given back.
        let command = Bytes::from(encoded.into_boxed_slice());
        if command.len() > COMMAND_BYTES_MAX {
            let (bytes, max) = (command.len(), COMMAND_BYTES_MAX);
            return Err(StoreError::TooLarge { bytes, max }.into());
        }
        self.running()?;
        // Checked by the state that this node has applied. A feature level only rises, so a node
        // that lags refuses too much at worst, and never proposes what another node cannot read.
        self.read_local(|state| state.enabled(original))?
            .map_err(ProposeError::Rejected)?;
        // `NotLeader` means that nothing was written. After `OutcomeUnknown` the command may be in
        // a log already: a second try is allowed only if applying it twice is as good as once.
        let may_repeat = |error: &StoreError| match error {
            StoreError::NotLeader { .. } => true,
            StoreError::OutcomeUnknown { .. } => M::is_repeatable(original),
            _ => false,
        };
        let deadline = Instant::now() + PROPOSE_TIMEOUT;
        let mut unknown = UnknownOutcome::default();
        loop {
            let refused = match self.propose_once(&command).await {
                Err(ProposeError::Store(refused)) => refused,
                done => return done,
            };
            if !may_repeat(&refused) {
                return Err(unknown.combine(refused).into());
            }
            unknown.note(&refused);
            let led = self.wait_for_leader(deadline, refused).await;
            led.map_err(|refused| unknown.combine(refused))?;
        }
    }

    /// Tries once, on this node or through the leader.
    async fn propose_once(&self, command: &Bytes) -> Result<M::Reply, ProposeError<M::Rejection>> {
        self.running()?;
        if self.is_leader() {
            return self
                .propose_here(command.clone())
                .await
                .map(|applied| applied.reply);
        }
        match self
            .forward(ForwardedRequest::Propose(command.clone()))
            .await?
        {
            ForwardedAnswer::Applied { index, result } => {
                // The caller may read its own write on this node next, from the applied state.
                self.catch_up(index).await;
                decode_result::<M>(result)
            }
            _ => Err(StoreError::unexpected_answer().into()),
        }
    }

    /// Applies an encoded command on this node as the leader.
    pub(crate) async fn propose_here(
        &self,
        command: Bytes,
    ) -> Result<AppliedCommand<M>, ProposeError<M::Rejection>> {
        let (answer, wait) = oneshot::channel();
        let proposal = Proposal { command, answer };
        // Never waits for room: the caller learns at once that it must back off, and the commands
        // in memory stay bounded.
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
            // The entry may be in this node's log by now. Then it is committed once a majority is
            // back, or discarded by another leader: nobody can say which.
            Err(_) => {
                let reason = "no majority confirmed it in time".into();
                Err(StoreError::OutcomeUnknown { reason }.into())
            }
        }
    }

    /// Changes the membership, on any node. If the leader dies during a change of the voters, the
    /// cluster may stay in a joint configuration, which the next change ends.
    ///
    /// # Errors
    /// [`MembershipError::NotCovered`] if `permit` does not cover it; otherwise see
    /// [`MembershipError`].
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
                match self
                    .forward(ForwardedRequest::Members(change.clone()))
                    .await
                {
                    Ok(ForwardedAnswer::Changed(changed)) => changed,
                    Ok(_) => return Err(StoreError::unexpected_answer().into()),
                    Err(error) => Err(error.into()),
                }
            };
            match changed {
                // Nothing was written by this attempt. Every other error ends the call: the change
                // may be under way, and a second one would be refused as in progress at best.
                Err(MembershipError::Store(refused @ StoreError::NotLeader { .. })) => {
                    self.wait_for_leader(deadline, refused).await?;
                }
                changed => return changed,
            }
        }
    }

    /// The cluster as its leader sees it; as this node sees it if no leader answers.
    pub async fn cluster_view(&self) -> ClusterView {
        if !self.is_leader() {
            let asked = timeout(VIEW_TIMEOUT, self.forward(ForwardedRequest::View)).await;
            if let Ok(Ok(ForwardedAnswer::View(view))) = asked {
                return view;
            }
        }
        self.cluster_view_here()
    }

    /// Carries out a request of a follower. This node must lead; if it does not, the answer is
    /// [`StoreError::NotLeader`], and the follower looks for the leader itself: a request is
    /// forwarded once, so that two nodes that take each other for the leader do not pass it back
    /// and forth.
    pub(crate) async fn carry_out_for(&self, what: ForwardedRequest) -> ForwardedAnswer {
        let failed = |error: StoreError| ForwardedAnswer::Failed(error);
        match what {
            ForwardedRequest::Propose(command) => match self.propose_here(command).await {
                Ok(AppliedCommand { reply, index }) => match codec::encode(&reply) {
                    Ok(reply) => ForwardedAnswer::Applied {
                        index,
                        result: Ok(reply.into()),
                    },
                    Err(_) => failed(StoreError::unexpected_answer()),
                },
                Err(ProposeError::Rejected(rejection)) => match codec::encode(&rejection) {
                    Ok(rejection) => ForwardedAnswer::Applied {
                        index: 0,
                        result: Err(rejection.into()),
                    },
                    Err(_) => failed(StoreError::unexpected_answer()),
                },
                Err(ProposeError::Store(error)) => failed(error),
            },
            ForwardedRequest::Barrier => {
                match timeout(READ_TIMEOUT, self.0.confirmations.join()).await {
                    Ok(Ok(index)) => ForwardedAnswer::ReadAt(index),
                    Ok(Err(error)) => failed(error),
                    Err(_) => failed(StoreError::NoQuorum),
                }
            }
            ForwardedRequest::View => ForwardedAnswer::View(self.cluster_view_here()),
            ForwardedRequest::Ask(question) => match self.answer_here(&question).await {
                Ok(answer) => ForwardedAnswer::Answered(answer),
                Err(error) => failed(error),
            },
            ForwardedRequest::Members(change) => {
                ForwardedAnswer::Changed(self.change_members_here(&change).await)
            }
        }
    }

    /// Forwards a request to the leader and waits for its answer.
    pub(crate) async fn forward(
        &self,
        what: ForwardedRequest,
    ) -> Result<ForwardedAnswer, StoreError> {
        let (answer, wait) = oneshot::channel();
        let has_effect = what.has_effect();
        let pending = PendingForward { what, answer };
        self.0.forwards.try_send(pending).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy {
                waiting: FORWARDS_MAX,
            },
            mpsc::error::TrySendError::Closed(_) => StoreError::ShutDown,
        })?;
        match timeout(PROPOSE_TIMEOUT, wait).await {
            Ok(Ok(ForwardedAnswer::Failed(error))) => Err(error),
            Ok(Ok(answer)) => Ok(answer),
            // A read barrier or a question changes nothing: there is no outcome to be unknown.
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

    /// Waits until this node has applied entry `index`, for a caller that reads its own write here.
    async fn catch_up(&self, index: u64) {
        let wait = self.0.raft.wait(Some(CATCH_UP_TIMEOUT));
        // A timeout is no error: the write is durable on a majority. Only `read_local` may miss it;
        // a linearizable read still waits.
        drop(wait.applied_index_at_least(Some(index), "own write").await);
    }

    /// Waits until a leader is known; fails with `refused` at the deadline.
    pub(crate) async fn wait_for_leader(
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
    // The command was applied, but its reply is unreadable: the caller must not take it for
    // refused.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_an_unknown_outcome_is_never_reported_as_harmless() {
        let outcome_unknown = |reason: &'static str| StoreError::OutcomeUnknown {
            reason: reason.into(),
        };
        let harmless = [
            StoreError::Busy { waiting: 1 },
            StoreError::NotLeader { leader: None },
            StoreError::ShutDown,
        ];
        for last in harmless {
            let mut unknown = UnknownOutcome::default();
            unknown.note(&StoreError::NotLeader { leader: None });
            assert_eq!(unknown.combine(last.clone()), last);
            unknown.note(&outcome_unknown("first"));
            unknown.note(&outcome_unknown("second"));
            assert_eq!(unknown.combine(last), outcome_unknown("first"));
        }
    }
}
