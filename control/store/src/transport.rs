//! The seam between the store and whatever carries bytes between members.
//!
//! A transport opens a [`Channel`] to a member and hands in the channels that others open, by
//! [`Store::serve_peer`](crate::Store::serve_peer). It knows frames, not Raft: what is in them,
//! retries, time limits and resumption are the store's business.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{Sink, SinkExt, Stream, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

/// Bytes of one frame.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// A member, as the cluster's membership names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    /// Its number.
    pub node: u64,
    /// Where its peers reach it; what that means is the transport's business.
    pub address: String,
}

/// What a channel is for. Lanes must not hold each other up: a snapshot on its way must cost
/// neither an entry's latency nor a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Entries of the log, many on their way at the same time; one channel per follower.
    Append,
    /// Heartbeats; one channel per follower.
    Heartbeat,
    /// One question and its answer: votes, changes of leadership.
    Control,
    /// What followers pass on to the leader: writes and read barriers, many at the same time.
    Forward,
    /// A snapshot. Large; should travel on a connection of its own.
    Snapshot,
}

/// Frames to a member and back, in order, each whole or not at all.
pub struct Channel {
    /// Frames to the other side. Waits while the other side does not read.
    pub outgoing: Pin<Box<dyn Sink<Bytes, Error = io::Error> + Send>>,
    /// Frames from the other side; ends when it closed the channel.
    pub incoming: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
}

impl Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").finish_non_exhaustive()
    }
}

impl Channel {
    /// A channel over a stream of bytes in each direction.
    pub fn over(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        let mut codec = LengthDelimitedCodec::builder();
        codec.max_frame_length(FRAME_BYTES_MAX);
        Self {
            outgoing: Box::pin(FramedWrite::new(writer, codec.new_codec())),
            incoming: Box::pin(FramedRead::new(reader, codec.new_codec()).map_ok(Into::into)),
        }
    }

    /// Two ends that are joined in memory; `depth` frames may wait in each direction.
    pub fn pair(depth: usize) -> (Self, Self) {
        let (left_out, right_in) = futures::channel::mpsc::channel(depth);
        let (right_out, left_in) = futures::channel::mpsc::channel(depth);
        (
            Self::of_queues(left_out, left_in),
            Self::of_queues(right_out, right_in),
        )
    }

    fn of_queues(
        outgoing: futures::channel::mpsc::Sender<Bytes>,
        incoming: futures::channel::mpsc::Receiver<Bytes>,
    ) -> Self {
        let closed = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the channel is closed");
        Self {
            outgoing: Box::pin(outgoing.sink_map_err(closed)),
            incoming: Box::pin(incoming.map(Ok)),
        }
    }

    pub(crate) async fn send(&mut self, frame: Bytes) -> io::Result<()> {
        self.outgoing.send(frame).await
    }

    /// The next frame; a closed channel is an error.
    pub(crate) async fn next(&mut self) -> io::Result<Bytes> {
        self.incoming.next().await.unwrap_or_else(|| {
            let message = "the other side closed the channel";
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
        })
    }
}

/// Opens channels to members.
///
/// An implementation proves to each side who the other is: a channel from [`open`](Self::open)
/// ends at the member that was asked for, and whoever hands a channel in names the member that it
/// comes from. It answers an error for a member that it cannot reach, in bounded time.
pub trait Transport: Debug + Send + Sync + 'static {
    /// A new channel to `member`.
    fn open(&self, member: &ClusterMember, lane: Lane) -> BoxFuture<'static, io::Result<Channel>>;
}

/// The transport of a cluster of one node: there is nobody to reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl Transport for NoPeers {
    fn open(&self, member: &ClusterMember, _lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let message = format!(
            "node {} is unreachable: this node runs without peers",
            member.node
        );
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::Unsupported, message)) })
    }
}
