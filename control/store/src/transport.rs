//! The interface between the store and the network between members.
//!
//! A transport opens a [`Channel`] to a member and hands in the channels that others open, by
//! [`Store::serve_peer`](crate::Store::serve_peer). It knows frames, not Raft: their content,
//! retries, time limits and resumption belong to the store.

use std::fmt::Debug;
use std::io;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::channel::Channel;

/// A member, as the cluster's membership names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    /// Its node number.
    pub node: u64,
    /// Its peer address, in the form that the transport understands.
    pub address: String,
}

/// Purpose of a channel. Lanes must not block each other (no head-of-line blocking): a snapshot in
/// progress must delay neither entries nor heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Pipelined log entries; one channel per follower.
    Append,
    /// Heartbeats; one channel per follower.
    Heartbeat,
    /// One question and its answer: votes, transfers of leadership.
    Control,
    /// Writes and read barriers that a follower forwards to the leader, many at the same time.
    Forward,
    /// A snapshot. Large; should use a connection of its own.
    Snapshot,
}

/// Opens channels to members.
///
/// An implementation authenticates both sides: a channel from [`open`](Self::open) ends at the
/// member that was asked for, and a channel handed in comes from the member named with it. For a
/// member out of reach it returns an error in bounded time.
pub trait Transport: Debug + Send + Sync + 'static {
    /// Opens a channel to `member`.
    fn open(&self, member: &ClusterMember, lane: Lane) -> BoxFuture<'static, io::Result<Channel>>;
}
