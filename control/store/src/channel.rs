//! A bidirectional stream of frames between two members.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt, TryStreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

/// Largest frame, bytes. A larger one breaks the channel, so that a peer cannot exhaust memory.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Frames to a member and back, in order, each whole or not at all.
pub struct Channel {
    /// Frames to the other side. Waits while the other side does not read (backpressure).
    pub outgoing: Pin<Box<dyn Sink<Bytes, Error = io::Error> + Send>>,
    /// Frames from the other side; ends when that side closes the channel.
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

    /// Two channels joined in memory; at most about `depth` frames wait in each direction.
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

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: Bytes) -> io::Result<()> {
        self.outgoing.send(frame).await
    }

    /// The next frame; a closed channel is an error.
    pub(crate) async fn next(&mut self) -> io::Result<Bytes> {
        // Each caller waits for an answer or for the next step. Those that may see an end read
        // `incoming` themselves.
        self.incoming.next().await.unwrap_or_else(|| {
            let message = "the other side closed the channel";
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
        })
    }
}
