//! The way of writes and read barriers from a follower to the leader.
//!
//! A follower passes a command on once: when the channel breaks before the answer, or the follower
//! loses its leader while it waits, nobody knows what became of it, and that is what the caller is
//! told. Read barriers and refused commands had no effect and may be tried again.
//!
//! A leader that dies breaks no channel: QUIC needs seconds to notice. Raft knows sooner, so a
//! conversation ends when this node's lease of its leader runs out or another one leads.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::StoreError;
use crate::machine::StateMachine;
use crate::membership::{ClusterView, MemberChange, MembershipError};
use crate::open::Node;
use crate::raft::network::Dialer;
use crate::transport::{Channel, Lane, Member};
use crate::wire;

/// Messages on their way to the leader, and on their way through it, for one follower.
pub(crate) const PASSED_MAX: usize = 4096;
/// How long opening the way to the leader may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the leader may leave everything unanswered.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// What a leader that handed over gets to answer what it was asked before.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a leader that was not heard is taken for lost without asking Raft again.
const LOST_PAUSE: Duration = Duration::from_millis(50);

/// What a follower passes on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Passed {
    /// An encoded command.
    Propose(Bytes),
    /// Which entry must be applied before a read?
    Barrier,
    /// A change of the membership.
    Members(MemberChange),
    /// How does the leader see the cluster?
    View,
}

impl Passed {
    /// Whether it may be tried again without harm when nobody knows what became of it.
    pub(crate) fn has_effect(&self) -> bool {
        matches!(self, Self::Propose(_) | Self::Members(_))
    }
}

/// What the leader answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The command was applied as entry `index`; its encoded reply, or its encoded rejection.
    Applied {
        index: u64,
        result: Result<Bytes, Bytes>,
    },
    /// A read may be answered once this entry is applied.
    ReadAt(u64),
    /// What came of a change of the membership.
    Changed(Result<(), MembershipError>),
    View(ClusterView),
    Failed(StoreError),
}

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    number: u64,
    what: Passed,
}

#[derive(Debug, Serialize, Deserialize)]
struct Response {
    number: u64,
    answer: Answer,
}

/// Something to pass on, and who waits for the answer.
pub(crate) struct Errand {
    pub(crate) what: Passed,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// Takes errands to whoever leads.
pub(crate) struct Forwarder<M: StateMachine> {
    pub(crate) raft: Arc<Node<M>>,
    pub(crate) dialer: Dialer,
    pub(crate) errands: mpsc::Receiver<Errand>,
    pub(crate) stop: CancellationToken,
}

impl<M: StateMachine> Forwarder<M> {
    /// Runs until stopped. A change of leadership begins another conversation; the old one ends
    /// when it has its answers.
    pub(crate) async fn run(mut self) {
        let mut talks = JoinSet::new();
        let mut current: Option<(u64, mpsc::Sender<Errand>)> = None;
        let mut lost: Option<(u64, Instant)> = None;
        loop {
            let errand = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(_) = talks.join_next(), if !talks.is_empty() => continue,
                errand = self.errands.recv() => match errand {
                    Some(errand) => errand,
                    None => break,
                },
            };
            let Some(leader) = self.leader() else {
                refuse(errand, StoreError::NotLeader { leader: None });
                continue;
            };
            let usable = |(node, way): &&(u64, mpsc::Sender<Errand>)| {
                *node == leader.node && !way.is_closed()
            };
            let way = match current.as_ref().filter(usable) {
                Some((_, way)) => way.clone(),
                None => {
                    let is_lost = |(node, until): (u64, Instant)| {
                        node == leader.node && Instant::now() < until
                    };
                    if lost.is_some_and(is_lost) || lease(&self.raft).await.is_none() {
                        if !lost.is_some_and(is_lost) {
                            lost = Some((leader.node, Instant::now() + LOST_PAUSE));
                        }
                        refuse(errand, StoreError::NotLeader { leader: None });
                        continue;
                    }
                    let (way, errands) = mpsc::channel(PASSED_MAX);
                    current = Some((leader.node, way.clone()));
                    let talk = Talk {
                        raft: self.raft.clone(),
                        dialer: self.dialer.clone(),
                        leader,
                        errands,
                    };
                    talks.spawn(talk.run());
                    way
                }
            };
            if let Err(error) = way.try_send(errand) {
                let (busy, errand) = match error {
                    mpsc::error::TrySendError::Full(errand) => {
                        let waiting = PASSED_MAX;
                        (StoreError::Busy { waiting }, errand)
                    }
                    mpsc::error::TrySendError::Closed(errand) => {
                        (StoreError::NotLeader { leader: None }, errand)
                    }
                };
                refuse(errand, busy);
            }
        }
        talks.shutdown().await;
    }

    fn leader(&self) -> Option<Member> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let node = metrics
            .current_leader
            .filter(|leader| *leader != metrics.id)?;
        let at = metrics.membership_config.get_node(&node)?;
        Some(Member {
            node,
            address: at.addr.clone(),
        })
    }
}

/// What is left of this node's lease of its leader; none when it ran out, or nobody was heard yet.
async fn lease<M: StateMachine>(raft: &Node<M>) -> Option<Duration> {
    let lease = Duration::from_millis(raft.config().election_timeout_max);
    let heard = raft.with_raft_state(|state| state.vote_last_modified());
    let heard = heard.await.ok().flatten()?;
    let left = lease.checked_sub(heard.elapsed())?;
    (!left.is_zero()).then_some(left)
}

/// Returns when this node has lost `leader`: its lease ran out, or it leads no more and has had
/// the time to say what became of what it was asked.
async fn lost<M: StateMachine>(raft: &Node<M>, leader: u64) {
    let mut metrics = raft.server_metrics();
    while metrics.borrow_and_update().current_leader == Some(leader) {
        let Some(left) = lease(raft).await else {
            return;
        };
        tokio::select! {
            biased;
            changed = metrics.changed() => if changed.is_err() {
                return;
            },
            () = sleep(left) => {}
        }
    }
    sleep(LAST_WORDS).await;
}

/// By the number of their request: who waits, and whether the request had an effect.
type Waiting = BTreeMap<u64, (oneshot::Sender<Answer>, bool)>;

/// One conversation with one leader.
struct Talk<M: StateMachine> {
    raft: Arc<Node<M>>,
    dialer: Dialer,
    leader: Member,
    errands: mpsc::Receiver<Errand>,
}

impl<M: StateMachine> Talk<M> {
    async fn run(mut self) {
        let (raft, leader) = (self.raft.clone(), self.leader.node);
        let mut waiting = Waiting::new();
        let talked = tokio::select! {
            biased;
            talked = self.open_and_talk(&mut waiting) => talked,
            () = lost(&raft, leader) => Err(io::Error::other("it was not heard or leads no more")),
        };
        if let Err(error) = talked {
            tracing::debug!(leader, error = %error, "the way to the leader broke");
        }
        // What was sent may have happened.
        for (answer, had_effect) in waiting.into_values() {
            let error = if had_effect {
                let reason = "the leader was lost while it was on its way".into();
                StoreError::OutcomeUnknown { reason }
            } else {
                StoreError::NotLeader { leader: None }
            };
            drop(answer.send(Answer::Failed(error)));
        }
        self.errands.close();
        while let Some(errand) = self.errands.recv().await {
            refuse(errand, StoreError::NotLeader { leader: None });
        }
    }

    async fn open_and_talk(&mut self, waiting: &mut Waiting) -> io::Result<()> {
        let opened = self.dialer.open(&self.leader, Lane::Forward, OPEN_TIMEOUT);
        self.talk(opened.await?, waiting).await
    }

    async fn talk(&mut self, mut channel: Channel, waiting: &mut Waiting) -> io::Result<()> {
        let mut number = 0;
        let mut is_over = false;
        while !is_over || !waiting.is_empty() {
            tokio::select! {
                biased;
                answer = timeout(SILENCE_MAX, channel.next()), if !waiting.is_empty() => {
                    let frame = answer.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                    let Response { number, answer } = wire::hear(&frame)?;
                    if let Some((waits, _)) = waiting.remove(&number) {
                        // Whoever asked may be gone.
                        drop(waits.send(answer));
                    }
                }
                errand = self.errands.recv(), if !is_over && waiting.len() < PASSED_MAX => {
                    let Some(Errand { what, answer }) = errand else {
                        is_over = true;
                        continue;
                    };
                    number += 1;
                    let has_effect = what.has_effect();
                    waiting.insert(number, (answer, has_effect));
                    channel.send(wire::say(&Request { number, what })?).await?;
                }
            }
        }
        Ok(())
    }
}

fn refuse(errand: Errand, error: StoreError) {
    drop(errand.answer.send(Answer::Failed(error)));
}

/// The leader's side: answers as the work is done, in any order.
pub(crate) async fn serve<F: Future<Output = Answer>>(
    mut channel: Channel,
    mut carry_out: impl FnMut(Passed) -> F,
) -> io::Result<()> {
    let mut at_work = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(response) = at_work.next(), if !at_work.is_empty() => {
                channel.send(wire::say::<Response>(&response)?).await?;
            }
            frame = channel.incoming.next(), if at_work.len() < PASSED_MAX => {
                let Some(frame) = frame else {
                    return Ok(());
                };
                let Request { number, what } = wire::hear(&frame?)?;
                let work = carry_out(what);
                at_work.push(async move {
                    let answer = work.await;
                    Response { number, answer }
                });
            }
        }
    }
}
