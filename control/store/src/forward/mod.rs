//! Forwards writes and read barriers from a follower to the leader.
//!
//! A follower forwards a command once. When the channel breaks before the answer, or the follower
//! loses its leader while it waits, the outcome is unknown, and the caller is told so. Read
//! barriers and refused commands had no effect and may be tried again.
//!
//! A leader that dies breaks no channel: QUIC needs seconds to notice. Raft knows sooner, so a
//! session ends when the lease that this node granted its leader runs out, or another node leads.

mod leader;
mod messages;
mod session;

use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::StoreError;
use crate::machine::StateMachine;
use crate::open::RaftNode;
use crate::raft::dialer::Dialer;
use crate::transport::ClusterMember;
use session::{LeaderSession, lease_left};

pub(crate) use leader::serve;
pub(crate) use messages::{ForwardedAnswer, ForwardedRequest, PendingForward};

/// Most requests of one follower in its queue, and most unanswered ones on its channel. Beyond the
/// first bound callers get [`StoreError::Busy`], beyond the second the queue fills.
pub(crate) const FORWARDS_MAX: usize = 4096;
/// Pause before Raft is asked again about a leader whose lease had run out. Requests within it are
/// refused without asking.
const LOST_PAUSE: Duration = Duration::from_millis(50);

/// A session that takes requests.
struct OpenSession {
    leader: u64,
    queue: mpsc::Sender<PendingForward>,
}

impl OpenSession {
    /// Queues a request for the session, or refuses it. Never waits: a slow leader must not keep
    /// requests for the next leader in the queue behind it.
    fn send(&self, forward: PendingForward) {
        match self.queue.try_send(forward) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(forward)) => {
                let waiting = FORWARDS_MAX;
                forward.refuse(StoreError::Busy { waiting });
            }
            Err(mpsc::error::TrySendError::Closed(forward)) => {
                forward.refuse(StoreError::NotLeader { leader: None });
            }
        }
    }
}

/// A leader whose lease had run out.
#[derive(Clone, Copy)]
struct LostLeader {
    node: u64,
    until: Instant,
}

/// Forwards requests to the current leader.
pub(crate) struct Forwarder<M: StateMachine> {
    pub(crate) raft: Arc<RaftNode<M>>,
    pub(crate) dialer: Dialer,
    pub(crate) forwards: mpsc::Receiver<PendingForward>,
    pub(crate) stop: CancellationToken,
}

impl<M: StateMachine> Forwarder<M> {
    /// Runs until stopped. A change of leadership opens another session; the old one ends when it
    /// has its answers.
    pub(crate) async fn run(mut self) {
        let mut sessions = JoinSet::new();
        let mut current: Option<OpenSession> = None;
        let mut lost: Option<LostLeader> = None;
        loop {
            let forward = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(_) = sessions.join_next(), if !sessions.is_empty() => continue,
                forward = self.forwards.recv() => match forward {
                    Some(forward) => forward,
                    None => break,
                },
            };
            let Some(leader) = self.leader() else {
                forward.refuse(StoreError::NotLeader { leader: None });
                continue;
            };
            let is_usable = |session: &&OpenSession| {
                session.leader == leader.node && !session.queue.is_closed()
            };
            if let Some(session) = current.as_ref().filter(is_usable) {
                session.send(forward);
                continue;
            }
            if self.is_lost(&leader, &mut lost).await {
                forward.refuse(StoreError::NotLeader { leader: None });
                continue;
            }
            let (queue, forwards) = mpsc::channel(FORWARDS_MAX);
            let session = OpenSession {
                leader: leader.node,
                queue,
            };
            session.send(forward);
            // The old session loses its sender here: its queue ends, and so does the session, once
            // it has its answers.
            current = Some(session);
            let session = LeaderSession {
                raft: self.raft.clone(),
                dialer: self.dialer.clone(),
                leader,
                forwards,
            };
            sessions.spawn(session.run());
        }
        sessions.shutdown().await;
    }

    /// `true` if the lease of `leader` has run out, so that no session is opened with it.
    async fn is_lost(&self, leader: &ClusterMember, lost: &mut Option<LostLeader>) -> bool {
        // Metrics name a dead leader until the next election. A session with it would end at once;
        // opening one for every request would dial without a pause.
        let is_known =
            lost.is_some_and(|lost| lost.node == leader.node && Instant::now() < lost.until);
        if is_known {
            return true;
        }
        if lease_left(&self.raft).await.is_some() {
            return false;
        }
        let until = Instant::now() + LOST_PAUSE;
        let node = leader.node;
        *lost = Some(LostLeader { node, until });
        true
    }

    /// The leader and its address; `None` if no leader is known or this node leads.
    fn leader(&self) -> Option<ClusterMember> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let node = metrics
            .current_leader
            .filter(|leader| *leader != metrics.id)?;
        let at = metrics.membership_config.get_node(&node)?;
        Some(ClusterMember {
            node,
            address: at.addr.clone(),
        })
    }
}
