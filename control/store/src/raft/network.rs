//! openraft's view of the members: questions and pipelined streams over a [`Transport`].

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption,
    RaftNetworkFactory,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, OptionalSend};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::deadline::within;
use crate::raft_types::{TypeConfig, Vote};
use crate::snapshot::SnapshotDir;
use crate::snapshot_transfer::send::Way;
use crate::transport::{Channel, ClusterMember, Lane, Transport};
use crate::wire::{self, Appended, ControlQuestion, Hello, PeerRefusal, Transferred, Voted};

type Snapshot = openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>;
type AppendAnswers<'s> =
    BoxStream<'s, Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>>;

/// Append requests on their way to one follower.
const IN_FLIGHT_MAX: usize = 64;
/// A follower that syncs slowly is not gone: entries get this many times the limit of a
/// heartbeat before their channel is given up.
const APPEND_PATIENCE: u32 = 10;

/// Who we are on every channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfId {
    pub(crate) cluster: Uuid,
    pub(crate) node: u64,
}

/// Opens channels and says hello on them.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(crate) this: SelfId,
    pub(crate) transport: Arc<dyn Transport>,
    /// Why members refuse this node, as far as it was told.
    pub(crate) refusals: Arc<Mutex<BTreeMap<u64, String>>>,
}

impl Dialer {
    pub(crate) async fn open(
        &self,
        member: &ClusterMember,
        lane: Lane,
        limit: Duration,
    ) -> io::Result<Channel> {
        let hello = Hello {
            version: wire::VERSION,
            cluster: self.this.cluster,
            from: self.this.node,
            to: member.node,
            lane,
        };
        let opened = async {
            let mut channel = self.transport.open(member, lane).await?;
            channel.send(wire::say(&hello)?).await?;
            Ok(channel)
        };
        within(limit, opened).await
    }

    /// One question and its answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        member: &ClusterMember,
        question: &ControlQuestion,
        limit: Duration,
    ) -> io::Result<T> {
        let asked = async {
            let mut channel = self.open(member, Lane::Control, limit).await?;
            // One that refuses says so and closes, perhaps before the question is there.
            let sent = channel.send(wire::say(question)?).await;
            let answer = channel.next().await;
            wire::hear(&answer.map_err(|e| sent.err().unwrap_or(e))?)
        };
        let answer = within(limit, asked).await;
        self.note(member.node, &answer);
        answer
    }

    /// Tells the operator once of each member that does not take this node for one of its own:
    /// a node that stands for election asks all, so it hears of it, and nothing else would show.
    fn note<T>(&self, node: u64, answer: &io::Result<T>) {
        let refusal = answer.as_ref().err().and_then(io::Error::get_ref);
        let refusal = refusal.and_then(|e| e.downcast_ref::<PeerRefusal>());
        let mut known = self
            .refusals
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(refusal) = refusal else {
            if answer.is_ok() {
                known.remove(&node);
            }
            return;
        };
        let text = refusal.to_string();
        if known.get(&node) != Some(&text) {
            tracing::error!(node, error = %text, "a control node refuses this one");
            known.insert(node, text);
        }
    }
}

/// Makes a [`Peer`] for each member and lane that openraft talks to.
#[derive(Debug)]
pub(crate) struct PeerFactory {
    pub(crate) dialer: Dialer,
    /// How snapshots are sent.
    pub(crate) way: Way,
}

impl PeerFactory {
    fn peer(&self, target: u64, node: &openraft::BasicNode, lane: Lane) -> Peer {
        let member = ClusterMember {
            node: target,
            address: node.addr.clone(),
        };
        Peer {
            member,
            lane,
            dialer: self.dialer.clone(),
            way: self.way.clone(),
            idle: Mutex::new(None),
        }
    }
}

impl RaftNetworkFactory<TypeConfig> for PeerFactory {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &openraft::BasicNode) -> Peer {
        self.peer(target, node, Lane::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &openraft::BasicNode) -> Peer {
        self.peer(target, node, Lane::Heartbeat)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &openraft::BasicNode) -> Peer {
        self.peer(target, node, Lane::Snapshot)
    }
}

/// The way to one member for one purpose.
#[derive(Debug)]
pub(crate) struct Peer {
    member: ClusterMember,
    lane: Lane,
    dialer: Dialer,
    way: Way,
    /// A channel on which everything was answered.
    idle: Mutex<Option<Channel>>,
}

impl Peer {
    fn idle(&self) -> MutexGuard<'_, Option<Channel>> {
        self.idle
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl NetBackoff<TypeConfig> for Peer {
    fn backoff(&self) -> Option<Backoff> {
        None
    }
}

impl NetVote<TypeConfig> for Peer {
    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let question = ControlQuestion::Vote(rpc);
        let asked = self
            .dialer
            .ask::<Voted>(&self.member, &question, option.soft_ttl());
        asked.await.map_err(unreachable)
    }

    // openraft's default grants without asking.
    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let question = ControlQuestion::PreVote(rpc);
        let asked = self
            .dialer
            .ask::<Voted>(&self.member, &question, option.soft_ttl());
        asked.await.map_err(unreachable)
    }
}

impl NetTransferLeader<TypeConfig> for Peer {
    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let question = ControlQuestion::TransferLeader(req);
        let asked = self
            .dialer
            .ask::<Transferred>(&self.member, &question, option.soft_ttl());
        asked.await.map_err(unreachable)
    }
}

impl NetSnapshot<TypeConfig> for Peer {
    type SnapshotData = SnapshotDir;

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let stall = option.soft_ttl();
        let sent = async {
            let channel = self.dialer.open(&self.member, self.lane, stall).await?;
            self.way
                .send(channel, vote, &snapshot.snapshot, stall)
                .await
        };
        tokio::select! {
            // In order, so that a simulation repeats itself.
            biased;
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = sent => sent.map_err(|e| {
                StreamingError::Unreachable(Unreachable::new(&AnyError::new(&e)))
            }),
        }
    }
}

impl NetStreamAppend<TypeConfig> for Peer {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<AppendAnswers<'s>, RPCError<TypeConfig>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            let patience = match self.lane {
                Lane::Heartbeat => option.soft_ttl(),
                _ => option.soft_ttl() * APPEND_PATIENCE,
            };
            let channel = self.idle().take();
            let pipeline = Pipeline {
                peer: self,
                channel,
                open_limit: option.soft_ttl(),
                input: Some(input),
                in_flight: 0,
                patience,
                give_up: Instant::now(),
            };
            let answers = futures::stream::unfold(Some(pipeline), async |pipeline| {
                let mut pipeline = pipeline?;
                match pipeline.next().await {
                    None => {
                        let Pipeline { peer, channel, .. } = pipeline;
                        *peer.idle() = channel;
                        None
                    }
                    Some(Ok(appended @ Ok(_))) => Some((Ok(appended), Some(pipeline))),
                    // The channel still carries what was sent behind: it is of no more use.
                    Some(Ok(refused @ Err(_))) => Some((Ok(refused), None)),
                    Some(Err(error)) => Some((Err(unreachable(error)), None)),
                }
            });
            let answers: AppendAnswers<'s> = Box::pin(answers);
            Ok(answers)
        })
    }
}

/// Requests on their way to one follower, answered in order.
struct Pipeline<'s, S> {
    peer: &'s mut Peer,
    /// Opened for the first request and not before: openraft's pause after an error is in the
    /// stream of requests, so that opening at once would try a dead member without any pause.
    channel: Option<Channel>,
    open_limit: Duration,
    /// `None` when there are no more.
    input: Option<S>,
    in_flight: usize,
    /// How long an answer may take.
    patience: Duration,
    give_up: Instant,
}

impl<S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin> Pipeline<'_, S> {
    /// The next answer; `None` when everything was asked and answered.
    async fn next(&mut self) -> Option<io::Result<Appended>> {
        loop {
            if self.input.is_none() && self.in_flight == 0 {
                return None;
            }
            let may_send = self.input.is_some() && self.in_flight < IN_FLIGHT_MAX;
            let request = async {
                match &mut self.input {
                    Some(input) => input.next().await,
                    None => None,
                }
            };
            let answer = async {
                match &mut self.channel {
                    Some(channel) => channel.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = answer, if self.in_flight > 0 => {
                    self.in_flight -= 1;
                    self.give_up = Instant::now() + self.patience;
                    return Some(answer.and_then(|frame| wire::hear(&frame)));
                }
                request = request, if may_send => match request {
                    None => self.input = None,
                    Some(request) => if let Err(error) = self.send(request).await {
                        return Some(Err(self.cause(error).await));
                    },
                },
                () = sleep_until(self.give_up), if self.in_flight > 0 => {
                    let ms = self.patience.as_millis();
                    let message = format!("node {} did not answer within {ms} ms", self.peer.member.node);
                    return Some(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
                }
            }
        }
    }

    async fn send(&mut self, request: AppendEntriesRequest<TypeConfig>) -> io::Result<()> {
        if self.in_flight == 0 {
            self.give_up = Instant::now() + self.patience;
        }
        let channel = match &mut self.channel {
            Some(channel) => channel,
            None => {
                let Peer {
                    dialer,
                    member,
                    lane,
                    ..
                } = &*self.peer;
                let opened = dialer.open(member, *lane, self.open_limit).await?;
                self.channel.insert(opened)
            }
        };
        for part in wire::split(request) {
            let frame = wire::say(&part)?;
            within(self.patience, channel.send(frame)).await?;
            self.in_flight += 1;
        }
        Ok(())
    }

    /// A member that refuses says why before it closes: that is worth more than a broken pipe.
    async fn cause(&mut self, error: io::Error) -> io::Error {
        let Some(channel) = &mut self.channel else {
            return error;
        };
        let said = within(self.patience, channel.next()).await;
        match said.map(|frame| wire::hear::<Appended>(&frame)) {
            Ok(Err(refusal)) => refusal,
            _ => error,
        }
    }
}

fn unreachable(error: io::Error) -> RPCError<TypeConfig> {
    RPCError::Unreachable(Unreachable::new(&AnyError::new(&error)))
}
