//! Turns waiting proposals into log entries: what waits together travels together.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use openraft::Raft;
use openraft::errors::ClientWriteError;
use openraft::impls::OneshotResponder;
use openraft::raft::ClientWriteResult;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::applied_state::Results;
use crate::applier::Applier;
use crate::error::{ProposeError, StoreError};
use crate::machine::StateMachine;
use crate::raft_types::{Batch, TypeConfig};

/// Proposals that may wait; more are refused with [`StoreError::Busy`].
pub const PROPOSALS_MAX: usize = 4096;
/// Commands in one log entry.
pub const BATCH_COMMANDS_MAX: usize = 256;
/// Bytes of commands in one log entry.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Bytes of one command.
pub const COMMAND_BYTES_MAX: usize = 2 << 20;
/// Log entries on their way at the same time. While all are, proposals gather for the next one.
const BATCHES_IN_FLIGHT_MAX: usize = 4;

/// A command was applied.
pub(crate) struct Done<M: StateMachine> {
    pub(crate) reply: M::Reply,
    /// The entry that it was applied with.
    pub(crate) index: u64,
}

/// What a proposer gets.
pub(crate) type Answer<M> = Result<Done<M>, ProposeError<<M as StateMachine>::Rejection>>;

/// One encoded command and who waits for it.
pub(crate) struct Proposal<M: StateMachine> {
    pub(crate) command: Bytes,
    pub(crate) answer: oneshot::Sender<Answer<M>>,
}

pub(crate) struct Proposer<M: StateMachine> {
    pub(crate) raft: Arc<Raft<TypeConfig, Applier<M>>>,
    pub(crate) proposals: mpsc::Receiver<Proposal<M>>,
    pub(crate) stop: CancellationToken,
}

impl<M: StateMachine> Proposer<M> {
    /// Runs until stopped; then everything still waiting is answered with `ShutDown`.
    pub(crate) async fn run(mut self) {
        let mut waiting = VecDeque::new();
        let mut in_flight = JoinSet::new();
        while self.gather(&mut waiting, &mut in_flight).await {
            let (commands, answers) = take_batch(&mut waiting);
            let (responder, outcome) = OneshotResponder::new_pair();
            match self
                .raft
                .client_write_ff(Batch(commands), Some(responder))
                .await
            {
                Ok(()) => {
                    in_flight.spawn(async move { settle::<M>(outcome.await.ok(), answers) });
                }
                Err(fatal) => tell_all::<M>(answers, &StoreError::Fatal(fatal.to_string())),
            }
        }
        self.proposals.close();
        while let Ok(proposal) = self.proposals.try_recv() {
            waiting.push_back(proposal);
        }
        tell_all::<M>(waiting.into_iter().map(|p| p.answer), &StoreError::ShutDown);
        while in_flight.join_next().await.is_some() {}
    }

    /// Waits for proposals and for room to send them. False when it is time to stop.
    async fn gather(
        &mut self,
        waiting: &mut VecDeque<Proposal<M>>,
        in_flight: &mut JoinSet<()>,
    ) -> bool {
        let mut arrived = Vec::new();
        loop {
            let room = BATCH_COMMANDS_MAX.saturating_sub(waiting.len());
            let free = in_flight.len() < BATCHES_IN_FLIGHT_MAX;
            if free && !waiting.is_empty() {
                // Take along what has arrived in the meantime.
                while waiting.len() < BATCH_COMMANDS_MAX
                    && let Ok(proposal) = self.proposals.try_recv()
                {
                    waiting.push_back(proposal);
                }
                return true;
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return false,
                Some(_) = in_flight.join_next(), if !in_flight.is_empty() => {}
                n = self.proposals.recv_many(&mut arrived, room), if room > 0 => {
                    if n == 0 {
                        return false;
                    }
                    waiting.extend(arrived.drain(..));
                }
            }
        }
    }
}

type Answers<M> = Vec<oneshot::Sender<Answer<M>>>;

fn take_batch<M: StateMachine>(waiting: &mut VecDeque<Proposal<M>>) -> (Vec<Bytes>, Answers<M>) {
    let (mut commands, mut answers, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(proposal) = waiting.pop_front() {
        if !commands.is_empty()
            && (bytes + proposal.command.len() > BATCH_BYTES_MAX
                || commands.len() == BATCH_COMMANDS_MAX)
        {
            waiting.push_front(proposal);
            break;
        }
        bytes += proposal.command.len();
        commands.push(proposal.command);
        answers.push(proposal.answer);
    }
    (commands, answers)
}

/// Hands the results of one entry to those who wait for them.
fn settle<M: StateMachine>(outcome: Option<ClientWriteResult<TypeConfig>>, answers: Answers<M>) {
    let (index, applied) = match outcome {
        Some(Ok(response)) => (response.log_id.index, response.data.results),
        Some(Err(ClientWriteError::ForwardToLeader(forward))) => {
            return tell_all::<M>(
                answers,
                &StoreError::NotLeader {
                    leader: forward.leader_id,
                },
            );
        }
        Some(Err(ClientWriteError::LogEntryDiscarded(_))) => {
            // Another leader may have it and commit it still.
            let reason = "leadership was lost while the write was on its way".into();
            return tell_all::<M>(answers, &StoreError::OutcomeUnknown { reason });
        }
        // Commands neither change the membership nor carry preconditions.
        Some(Err(error)) => {
            return tell_all::<M>(answers, &StoreError::Fatal(error.to_string()));
        }
        None => {
            let reason = "this node stopped while the write was on its way".into();
            return tell_all::<M>(answers, &StoreError::OutcomeUnknown { reason });
        }
    };
    let results = applied.and_then(|applied| applied.downcast::<Results<M>>().ok());
    let Some(results) = results else {
        let reason = "the entry was applied without an answer".into();
        return tell_all::<M>(answers, &StoreError::OutcomeUnknown { reason });
    };
    for (answer, result) in answers.into_iter().zip(*results) {
        // Whoever asked may be gone.
        let done = result.map(|reply| Done { reply, index });
        drop(answer.send(done.map_err(ProposeError::Rejected)));
    }
}

fn tell_all<M: StateMachine>(
    answers: impl IntoIterator<Item = oneshot::Sender<Answer<M>>>,
    error: &StoreError,
) {
    for answer in answers {
        drop(answer.send(Err(ProposeError::Store(error.clone()))));
    }
}
