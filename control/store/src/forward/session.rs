//! The follower's side of the forward lane: one session with one leader.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::FORWARDS_MAX;
use super::leader::{NumberedAnswer, NumberedRequest};
use super::messages::{ForwardedAnswer, PendingForward};
use crate::channel::Channel;
use crate::error::StoreError;
use crate::machine::StateMachine;
use crate::open::RaftNode;
use crate::raft::dialer::Dialer;
use crate::transport::{ClusterMember, Lane};
use crate::wire;

/// Time limit for opening the channel to the leader. Beyond it the session fails.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time without an answer while requests are unanswered; longer than any request may take
/// on the leader. Beyond it the session fails.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Grace period for a leader that has handed leadership over: it may still answer requests from
/// before. Beyond it the session fails.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// A request that was sent and has no answer yet.
struct UnansweredRequest {
    answer: oneshot::Sender<ForwardedAnswer>,
    has_effect: bool,
}

/// One session with one leader: a channel, and the requests on it.
pub(super) struct LeaderSession<M: StateMachine> {
    pub(super) raft: Arc<RaftNode<M>>,
    pub(super) dialer: Dialer,
    pub(super) leader: ClusterMember,
    pub(super) forwards: mpsc::Receiver<PendingForward>,
}

impl<M: StateMachine> LeaderSession<M> {
    /// Forwards requests until the forwarder closes the queue, the channel breaks or the leader is
    /// lost. Every request gets an answer.
    pub(super) async fn run(mut self) {
        let (raft, leader) = (self.raft.clone(), self.leader.node);
        let mut unanswered = BTreeMap::new();
        let ended = tokio::select! {
            biased;
            ended = self.open_and_forward(&mut unanswered) => ended,
            // QUIC takes seconds to notice a dead leader, and the channel to one that has stepped
            // down stays open. Callers would wait for answers that never come, although the next
            // leader is elected already.
            () = wait_until_lost(&raft, leader) => {
                Err(io::Error::other("the leader was not heard or has stepped down"))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(leader, error = %error, "the session with the leader failed");
        }
        // The leader may have written these to its log, and the next leader may commit them. Only
        // requests without effect are known to be harmless.
        for request in unanswered.into_values() {
            let error = if request.has_effect {
                let reason = "the leader was lost while it was on its way".into();
                StoreError::OutcomeUnknown { reason }
            } else {
                StoreError::NotLeader { leader: None }
            };
            drop(request.answer.send(ForwardedAnswer::Failed(error)));
        }
        // These were never sent, so all of them may be tried again, writes too. The queue is closed
        // first: a request that came in after the drain would be dropped with the queue, and its
        // caller be told that the outcome is unknown.
        self.forwards.close();
        while let Some(forward) = self.forwards.recv().await {
            forward.refuse(StoreError::NotLeader { leader: None });
        }
    }

    async fn open_and_forward(
        &mut self,
        unanswered: &mut BTreeMap<u64, UnansweredRequest>,
    ) -> io::Result<()> {
        let opened = self.dialer.open(&self.leader, Lane::Forward, OPEN_TIMEOUT);
        forward(opened.await?, &mut self.forwards, unanswered).await
    }
}

/// Sends the requests of a queue through a channel and passes the answers on, until the queue is
/// closed and every request has its answer.
///
/// # Errors
/// When the channel breaks or the leader is silent for [`SILENCE_MAX`].
async fn forward(
    mut channel: Channel,
    forwards: &mut mpsc::Receiver<PendingForward>,
    unanswered: &mut BTreeMap<u64, UnansweredRequest>,
) -> io::Result<()> {
    let mut number = 0;
    let mut is_over = false;
    // Only answers extend it. A timer that each request starts again would never end, because the
    // callers of a silent leader keep asking.
    let mut silent_until = Instant::now() + SILENCE_MAX;
    // A session that is replaced by one with another leader still waits for its answers: the
    // old leader knows what became of its requests.
    while !is_over || !unanswered.is_empty() {
        tokio::select! {
            biased;
            answer = timeout_at(silent_until, channel.next()), if !unanswered.is_empty() => {
                let NumberedAnswer { number, answer } = wire::hear(&answer??)?;
                silent_until = Instant::now() + SILENCE_MAX;
                if let Some(request) = unanswered.remove(&number) {
                    // The caller may have given up.
                    drop(request.answer.send(answer));
                }
            }
            forward = forwards.recv(), if !is_over && unanswered.len() < FORWARDS_MAX => {
                let Some(PendingForward { what, answer }) = forward else {
                    is_over = true;
                    continue;
                };
                if unanswered.is_empty() {
                    silent_until = Instant::now() + SILENCE_MAX;
                }
                number += 1;
                let has_effect = what.has_effect();
                // Noted before it is sent: a send that fails may have delivered the frame.
                unanswered.insert(number, UnansweredRequest { answer, has_effect });
                let frame = wire::say(&NumberedRequest { number, what })?;
                // Limited too: no answer is taken while a leader that does not read blocks the send.
                timeout_at(silent_until, channel.send(frame)).await??;
            }
        }
    }
    Ok(())
}

/// Time that is left of the lease that this node has granted its leader. `None` means that the
/// lease has run out, or that no leader was heard since the start.
pub(super) async fn lease_left<M: StateMachine>(raft: &RaftNode<M>) -> Option<Duration> {
    let lease = Duration::from_millis(raft.config().election_timeout_max);
    let heard = raft.with_raft_state(|state| state.vote_last_modified());
    let heard = heard.await.ok().flatten()?;
    let left = lease.checked_sub(heard.elapsed())?;
    (!left.is_zero()).then_some(left)
}

/// Returns when this node has lost `leader`: its lease ran out, or another node leads and `leader`
/// has had [`LAST_ANSWERS`] to answer.
async fn wait_until_lost<M: StateMachine>(raft: &RaftNode<M>, leader: u64) {
    let mut metrics = raft.server_metrics();
    while metrics.borrow_and_update().current_leader == Some(leader) {
        let Some(left) = lease_left(raft).await else {
            return;
        };
        tokio::select! {
            biased;
            changed = metrics.changed() => if changed.is_err() {
                return;
            },
            // Heartbeats extend the lease without a change of these metrics, so the loop looks
            // again when the lease would have ended.
            () = sleep(left) => {}
        }
    }
    sleep(LAST_ANSWERS).await;
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::forward::ForwardedRequest;

    fn barrier() -> PendingForward {
        PendingForward {
            what: ForwardedRequest::Barrier,
            answer: oneshot::channel().0,
        }
    }

    /// Runs a session over `channel`; the sender queues its requests.
    fn session(channel: Channel) -> (mpsc::Sender<PendingForward>, JoinSet<io::ErrorKind>) {
        let (queue, mut forwards) = mpsc::channel(FORWARDS_MAX);
        let mut sessions = JoinSet::new();
        sessions.spawn(async move {
            let ended = forward(channel, &mut forwards, &mut BTreeMap::new()).await;
            ended.unwrap_err().kind()
        });
        (queue, sessions)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_do_not_extend_the_silence_of_a_leader() {
        let (ours, mut leaders) = Channel::pair(64);
        let (queue, mut sessions) = session(ours);
        for _ in 0..3 {
            queue.send(barrier()).await.unwrap();
            leaders.next().await.unwrap();
            advance(SILENCE_MAX / 3).await;
        }
        queue.send(barrier()).await.unwrap();
        let ended = timeout(SILENCE_MAX / 3, sessions.join_next()).await;
        assert_eq!(ended.unwrap().unwrap().unwrap(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_extend_a_session() {
        let (ours, mut leaders) = Channel::pair(64);
        let (queue, mut sessions) = session(ours);
        for _ in 0..6 {
            queue.send(barrier()).await.unwrap();
            let request: NumberedRequest = wire::hear(&leaders.next().await.unwrap()).unwrap();
            advance(SILENCE_MAX / 2).await;
            let number = request.number;
            let answer = ForwardedAnswer::ReadAt(1);
            let answer = wire::say(&NumberedAnswer { number, answer }).unwrap();
            leaders.send(answer).await.unwrap();
        }
        assert!(sessions.try_join_next().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_does_not_read_is_given_up() {
        let (ours, _leaders) = Channel::pair(1);
        let (queue, mut sessions) = session(ours);
        for _ in 0..64 {
            queue.send(barrier()).await.unwrap();
        }
        let ended = timeout(SILENCE_MAX * 2, sessions.join_next()).await;
        assert_eq!(ended.unwrap().unwrap().unwrap(), io::ErrorKind::TimedOut);
    }
}
