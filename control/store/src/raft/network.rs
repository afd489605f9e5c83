//! The seam between openraft and the wire between members.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::sync::Arc;

use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, OptionalSend};

use super::types::{TypeConfig, Vote};
use crate::snapshot::SnapshotDir;

type Snapshot = openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>;

/// Carries messages between members.
///
/// An implementation puts the cluster's id into every message, enforces `option.soft_ttl()`, and
/// answers an error, never a grant, for a member that it cannot reach. It should override
/// nothing here lightly: [`pre_vote`](Transport::pre_vote) has no default on purpose, because
/// openraft's own default grants.
pub(crate) trait Transport: Debug + Send + Sync + 'static {
    fn append(
        &self,
        target: u64,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> impl Future<Output = io::Result<AppendEntriesResponse<TypeConfig>>> + Send;
    fn vote(
        &self,
        target: u64,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> impl Future<Output = io::Result<VoteResponse<TypeConfig>>> + Send;
    fn pre_vote(
        &self,
        target: u64,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> impl Future<Output = io::Result<VoteResponse<TypeConfig>>> + Send;
    fn snapshot(
        &self,
        target: u64,
        vote: Vote,
        snapshot: Snapshot,
        option: RPCOption,
    ) -> impl Future<Output = io::Result<SnapshotResponse<TypeConfig>>> + Send;
}

/// The transport of a cluster of one node: there is nobody to reach.
#[derive(Debug, Default)]
pub(crate) struct NoPeers;

impl NoPeers {
    fn unreachable<T>(target: u64) -> io::Result<T> {
        let message = format!("node {target} is unreachable: this node runs without peers");
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

impl Transport for NoPeers {
    async fn append(
        &self,
        target: u64,
        _rpc: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> io::Result<AppendEntriesResponse<TypeConfig>> {
        Self::unreachable(target)
    }

    async fn vote(
        &self,
        target: u64,
        _rpc: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> io::Result<VoteResponse<TypeConfig>> {
        Self::unreachable(target)
    }

    async fn pre_vote(
        &self,
        target: u64,
        _rpc: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> io::Result<VoteResponse<TypeConfig>> {
        Self::unreachable(target)
    }

    async fn snapshot(
        &self,
        target: u64,
        _vote: Vote,
        _snapshot: Snapshot,
        _option: RPCOption,
    ) -> io::Result<SnapshotResponse<TypeConfig>> {
        Self::unreachable(target)
    }
}

/// Makes a [`Peer`] for each member that openraft talks to.
#[derive(Debug)]
pub(crate) struct Peers<T>(pub(crate) Arc<T>);

/// The way to one member.
#[derive(Debug)]
pub(crate) struct Peer<T> {
    target: u64,
    transport: Arc<T>,
}

impl<T: Transport> RaftNetworkFactory<TypeConfig> for Peers<T> {
    type Network = Peer<T>;

    async fn new_client(&mut self, target: u64, _node: &openraft::BasicNode) -> Peer<T> {
        Peer {
            target,
            transport: self.0.clone(),
        }
    }
}

impl<T: Transport> RaftNetworkV2<TypeConfig> for Peer<T> {
    type SnapshotData = SnapshotDir;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.transport
            .append(self.target, rpc, option)
            .await
            .map_err(unreachable)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.transport
            .vote(self.target, rpc, option)
            .await
            .map_err(unreachable)
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        self.transport
            .pre_vote(self.target, rpc, option)
            .await
            .map_err(unreachable)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        tokio::select! {
            // In order, so that a simulation repeats itself.
            biased;
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = self.transport.snapshot(self.target, vote, snapshot, option) => {
                sent.map_err(|e| StreamingError::Unreachable(Unreachable::new(&AnyError::new(&e))))
            }
        }
    }
}

fn unreachable(error: io::Error) -> RPCError<TypeConfig> {
    RPCError::Unreachable(Unreachable::new(&AnyError::new(&error)))
}
