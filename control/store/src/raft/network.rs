//! The calling side of Raft's network: questions and pipelined append streams over a [`Transport`].

use std::future::Future;
use std::io;

use futures::Stream;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
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
use parking_lot::Mutex;
use tokio::time::Instant;

use super::dialer::Dialer;
use super::pipeline::Pipeline;
use crate::channel::Channel;
use crate::raft_types::{TypeConfig, Vote};
use crate::snapshot::SnapshotDir;
use crate::snapshot_transfer::send::SnapshotSender;
use crate::transport::{ClusterMember, Lane};
use crate::wire::ControlQuestion;

type AppendAnswers<'s> =
    BoxStream<'s, Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>>;

/// Time limit for the answer to an append request, in time limits of a heartbeat. A follower
/// answers after its sync, and one with a slow disk is not dead. Beyond it the channel is closed
/// and the entries are sent again.
const APPEND_PATIENCE: u32 = 10;

/// Makes a [`Peer`] for each member and lane that openraft talks to.
#[derive(Debug)]
pub(crate) struct PeerFactory {
    pub(crate) dialer: Dialer,
    /// How snapshots are sent.
    pub(crate) way: SnapshotSender,
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

/// A client of one member for one lane.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(super) member: ClusterMember,
    pub(super) lane: Lane,
    pub(super) dialer: Dialer,
    way: SnapshotSender,
    /// An open channel without unanswered requests, for the next append stream.
    idle: Mutex<Option<Channel>>,
}

impl NetBackoff<TypeConfig> for Peer {
    // `None` means openraft's own pause after an error.
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
        let asked =
            self.dialer
                .ask::<VoteResponse<TypeConfig>>(&self.member, &question, option.soft_ttl());
        asked.await.map_err(unreachable)
    }

    // openraft's default implementation grants the pre-vote without asking. A node that was cut off
    // would then raise its term and unseat a healthy leader when it comes back.
    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let question = ControlQuestion::PreVote(rpc);
        let asked =
            self.dialer
                .ask::<VoteResponse<TypeConfig>>(&self.member, &question, option.soft_ttl());
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
        let asked = self.dialer.ask::<TransferLeaderResponse<TypeConfig>>(
            &self.member,
            &question,
            option.soft_ttl(),
        );
        asked.await.map_err(unreachable)
    }
}

impl NetSnapshot<TypeConfig> for Peer {
    type SnapshotData = SnapshotDir;

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>,
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
            // `biased`: random polling order would make a simulation irreproducible.
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
            // A heartbeat's answer proves the leader's lease, so a late one is worth nothing.
            let patience = match self.lane {
                Lane::Heartbeat => option.soft_ttl(),
                _ => option.soft_ttl() * APPEND_PATIENCE,
            };
            let channel = self.idle.lock().take();
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
                    // Everything is answered: the channel is clean, and the next stream of this
                    // client can use it without dialling and without a hello.
                    None => {
                        let Pipeline { peer, channel, .. } = pipeline;
                        *peer.idle.lock() = channel;
                        None
                    }
                    Some(Ok(appended @ Ok(_))) => Some((Ok(appended), Some(pipeline))),
                    // A refusal ends the stream. Answers to the requests sent behind are still to
                    // come on this channel; the next stream would take them for its own. So the
                    // channel is closed.
                    Some(Ok(refused @ Err(_))) => Some((Ok(refused), None)),
                    Some(Err(error)) => Some((Err(unreachable(error)), None)),
                }
            });
            let answers: AppendAnswers<'s> = Box::pin(answers);
            Ok(answers)
        })
    }
}

fn unreachable(error: io::Error) -> RPCError<TypeConfig> {
    RPCError::Unreachable(Unreachable::new(&AnyError::new(&error)))
}
