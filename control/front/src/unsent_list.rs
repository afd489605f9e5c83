//! A list that is sent in chunks, as the client reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use proto_bounds::Place;
use tokio::time::Instant;

use super::compression::StreamCompressor;
use super::end::End;
use super::listed::WrittenList;
use super::reply::{Abandoned, Reply, ReplyBody};
use super::rooms::ShareOwner;

/// Size of a chunk, bytes before compression. The last item may exceed it.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Time without a read after which a list may lose its place. The same time closes a connection.
pub(super) const UNREAD_AFTER: Duration = Duration::from_secs(60);

/// The next part of an answer.
enum SendStep {
    Frame(Frame<Bytes>),
    Nothing,
    Failed(Abandoned),
    Ended,
}

/// A list of which the client has not read everything yet.
pub(super) struct UnsentList {
    pub(super) reply: Reply,
    pub(super) list: WrittenList,
    /// Index of the next item.
    pub(super) next: usize,
    /// Bytes to send before the next item.
    pub(super) kept: Vec<u8>,
    /// Bytes sent, before compression.
    pub(super) sent: usize,
    /// Length that the frame header announced, bytes. `None` in Connect, which has no header.
    pub(super) promised: Option<usize>,
    pub(super) packer: StreamCompressor,
    /// Status and trailers after the message. `None` in Connect, and once they are sent.
    pub(super) end: Option<End>,
    /// `true` if the whole message has been written.
    pub(super) is_written: bool,
    /// When the client last asked for more.
    pub(super) read_at: Instant,
    /// Deadline of the call.
    pub(super) until: Instant,
    pub(super) _place: Place<ShareOwner>,
}

impl std::fmt::Debug for UnsentList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnsentList")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl UnsentList {
    /// When the list loses its place unless the client reads more of it.
    pub(super) fn due(&self) -> Instant {
        self.until.min(self.read_at + UNREAD_AFTER)
    }

    fn step(&mut self, now: Instant) -> SendStep {
        if self.until <= now {
            return SendStep::Failed(Abandoned("its deadline has passed"));
        }
        self.read_at = now;
        if self.is_written {
            let end = self.end.take();
            return end.map_or(SendStep::Ended, |end| {
                SendStep::Frame(self.reply.end_frame(end))
            });
        }
        match self.chunk() {
            Ok(chunk) if chunk.is_empty() => SendStep::Nothing,
            Ok(chunk) => SendStep::Frame(Frame::data(chunk)),
            Err(why) => SendStep::Failed(why),
        }
    }

    fn chunk(&mut self) -> Result<Bytes, Abandoned> {
        let mut part = std::mem::take(&mut self.kept);
        while part.len() < CHUNK_BYTES && self.next < self.list.count() {
            let put = self.list.put(self.next, &mut part);
            put.map_err(|_| Abandoned("an item cannot be written"))?;
            self.next += 1;
        }
        if self.next == self.list.count() {
            part.extend_from_slice(&self.list.after);
            self.is_written = true;
        } else if self.reply.is_armoured() {
            // Base64 encodes three bytes at a time. A chunk of another length would end in padding,
            // which clients accept only at the end of the body.
            self.kept = part.split_off(part.len() - part.len() % 3);
        }
        self.sent += part.len();
        let is_other = self.promised.is_some_and(|promised| promised != self.sent);
        // gRPC promised the length in the frame header. A shorter or longer message would shift
        // every frame after it, so the stream is aborted instead.
        if self.is_written && is_other {
            return Err(Abandoned("its length differs from the one in its header"));
        }
        let packed = self.packer.push(part, self.is_written);
        let packed = packed.map_err(|_| Abandoned("it cannot be compressed"))?;
        Ok(self.reply.armour(packed.into()))
    }
}

/// The body of an answer: one step of the list for each frame that the client reads.
pub(super) fn body(sending: Arc<Mutex<Option<UnsentList>>>) -> ReplyBody {
    let frames = stream::unfold(Some(sending), |sending| async move {
        let sending = sending?;
        loop {
            let step = match lock(&sending).as_mut() {
                Some(sending) => sending.step(Instant::now()),
                None => SendStep::Failed(Abandoned("it was not read")),
            };
            match step {
                SendStep::Frame(frame) => return Some((Ok(frame), Some(sending))),
                SendStep::Failed(why) => return Some((Err(why), None)),
                SendStep::Ended => return None,
                // The compressor kept the chunk and has no output yet.
                SendStep::Nothing => tokio::task::yield_now().await,
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Locks a list, or a list of lists. A panic of another holder leaves both readable.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
