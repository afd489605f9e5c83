//! Batches waiting proposals into log entries: all that wait at the same time share one entry, and
//! so one sync on each node.

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
use crate::proposal::{AppliedCommand, Proposal, ProposalResult};
use crate::raft_types::{CommandBatch, TypeConfig};

/// Most proposals that wait for the proposer. Beyond it callers get [`StoreError::Busy`].
pub const PROPOSALS_MAX: usize = 4096;
/// Most commands in one log entry. Further ones go into the next entry.
pub const BATCH_COMMANDS_MAX: usize = 256;
/// Most bytes of commands in one log entry. Further commands go into the next entry.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Largest command, bytes. A larger one is refused with [`StoreError::TooLarge`]; an entry with it
/// still fits a frame to another member.
pub const COMMAND_BYTES_MAX: usize = 2 << 20;
/// Most log entries proposed and not yet applied (pipelining). Beyond it proposals wait and form a
/// larger batch.
const BATCHES_IN_FLIGHT_MAX: usize = 4;

/// Takes proposals from their queue and writes them to Raft. Runs as one task per node.
pub(crate) struct Proposer<M: StateMachine> {
    pub(crate) raft: Arc<Raft<TypeConfig, Applier<M>>>,
    pub(crate) proposals: mpsc::Receiver<Proposal<M>>,
    pub(crate) stop: CancellationToken,
}

impl<M: StateMachine> Proposer<M> {
    /// Runs until stopped; proposals that still wait then get [`StoreError::ShutDown`].
    pub(crate) async fn run(mut self) {
        let mut waiting = VecDeque::new();
        let mut in_flight = JoinSet::new();
        while self.gather(&mut waiting, &mut in_flight).await {
            let (commands, answers) = take_batch(&mut waiting);
            let (responder, outcome) = OneshotResponder::new_pair();
            // Returns when Raft has taken the entry, not when it is committed: the next batch is
            // formed meanwhile. If Raft falls behind this waits, the queue fills, and callers get
            // `Busy`: backpressure.
            match self
                .raft
                .client_write_ff(CommandBatch(commands), Some(responder))
                .await
            {
                Ok(()) => {
                    in_flight.spawn(async move { settle::<M>(outcome.await.ok(), answers) });
                }
                Err(fatal) => answer_all::<M>(answers, &StoreError::Fatal(fatal.to_string())),
            }
        }
        // Closed before it is drained: a proposal that came in after the drain would be dropped
        // without an answer, which its caller must take for an unknown outcome. Nothing here was
        // written, so the answer is `ShutDown`.
        self.proposals.close();
        while let Ok(proposal) = self.proposals.try_recv() {
            waiting.push_back(proposal);
        }
        answer_all::<M>(waiting.into_iter().map(|p| p.answer), &StoreError::ShutDown);
        // Entries in flight still get their true outcome.
        while in_flight.join_next().await.is_some() {}
    }

    /// Waits for proposals and for room in flight. `false` if the proposer must stop.
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
                // Proposals that arrived since the last wait join this entry: under load they
                // would otherwise pay for a sync of their own.
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

/// Takes the proposals of one entry from the front of `waiting`.
fn take_batch<M: StateMachine>(
    waiting: &mut VecDeque<Proposal<M>>,
) -> (Vec<Bytes>, Vec<oneshot::Sender<ProposalResult<M>>>) {
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

/// Answers the callers of one entry.
fn settle<M: StateMachine>(
    outcome: Option<ClientWriteResult<TypeConfig>>,
    answers: Vec<oneshot::Sender<ProposalResult<M>>>,
) {
    let (index, applied) = match outcome {
        Some(Ok(response)) => (response.log_id.index, response.data.results),
        // Refused before it was written to the log: safe to propose again elsewhere.
        Some(Err(ClientWriteError::ForwardToLeader(forward))) => {
            return answer_all::<M>(
                answers,
                &StoreError::NotLeader {
                    leader: forward.leader_id,
                },
            );
        }
        Some(Err(ClientWriteError::LogEntryDiscarded(_))) => {
            // The next leader may have received the entry and still commit it.
            let reason = "leadership was lost while the write was on its way".into();
            return answer_all::<M>(answers, &StoreError::OutcomeUnknown { reason });
        }
        // The other errors are of changes of the membership and of preconditions, which commands
        // do not have: a bug.
        Some(Err(error)) => {
            return answer_all::<M>(answers, &StoreError::Fatal(error.to_string()));
        }
        None => {
            let reason = "this node stopped while the write was on its way".into();
            return answer_all::<M>(answers, &StoreError::OutcomeUnknown { reason });
        }
    };
    let results = applied.and_then(|applied| applied.downcast::<Results<M>>().ok());
    let Some(results) = results else {
        let reason = "the entry was applied without an answer".into();
        return answer_all::<M>(answers, &StoreError::OutcomeUnknown { reason });
    };
    for (answer, result) in answers.into_iter().zip(*results) {
        // The caller may have given up at its timeout.
        let done = result.map(|reply| AppliedCommand { reply, index });
        drop(answer.send(done.map_err(ProposeError::Rejected)));
    }
}

/// Answers every caller with `error`.
fn answer_all<M: StateMachine>(
    answers: impl IntoIterator<Item = oneshot::Sender<ProposalResult<M>>>,
    error: &StoreError,
) {
    for answer in answers {
        drop(answer.send(Err(ProposeError::Store(error.clone()))));
    }
}
