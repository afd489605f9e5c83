//! Answers with large lists: items are encoded as the reader asks for more.
//!
//! A list holds a place until its last byte is written to the connection or its reader is gone. A list
//! that is not read for too long loses its place to the next one.
//!
//! Invariant: at most one chunk of an answer is encoded and not yet written to the connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use proto_bounds::{Place, Places};
use proto_public::Method;
use tokio::time::Instant;
use tonic::Status;

use super::compression::{Compression, StreamCompressor};
use super::end::End;
use super::envelope::frame_header;
use super::listed::{ListMessage, WrittenList};
use super::protocol::{DEADLINE_MAX, Framing};
use super::reply::{Abandoned, Reply, ReplyBody, as_headers};
use super::rooms::ShareOwner;

/// Largest list that is encoded as a whole, bytes of protobuf. A larger one is sent in chunks.
const WHOLE_BYTES_MAX: usize = 256 << 10;
/// Size of a chunk, bytes before compression. The last item may exceed it.
const CHUNK_BYTES: usize = 64 << 10;
/// Most large lists in progress. Each holds a chunk, the window of a compressor and its rows.
/// Further lists are refused, unless one that is not read gives up its place.
const LISTS_MAX: usize = 512;
/// Most large lists in progress of one caller.
const LISTS_EACH_MAX: usize = 16;
/// Time without a read after which a list may lose its place. The same time closes a connection.
const UNREAD_AFTER: Duration = Duration::from_secs(60);

/// An answer with a list, as its handler returned it.
#[derive(Debug)]
pub(super) struct ListReply {
    pub(super) method: &'static Method,
    pub(super) message: ListMessage,
    pub(super) headers: HeaderMap,
    pub(super) trailers: HeaderMap,
    /// Deadline of the caller. `None` means there is none.
    pub(super) deadline: Option<Instant>,
}

/// The large lists in progress.
#[derive(Debug)]
pub(super) struct OpenLists {
    places: Arc<Places<ShareOwner>>,
    open: Mutex<Vec<Weak<Mutex<Option<UnsentList>>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenLists {
    pub(super) fn new() -> Self {
        Self {
            places: Places::new(LISTS_MAX, LISTS_EACH_MAX),
            open: Mutex::default(),
        }
    }

    /// Answers with a list: a small one whole, a large one as it is read.
    ///
    /// # Errors
    /// `resource_exhausted` when the caller has too many large lists on their way, or for a list
    /// that gRPC cannot carry in one message; `internal` for a list that the method does not have.
    pub(super) async fn answer(
        &self,
        reply: Reply,
        answer: ListReply,
        caller: ShareOwner,
    ) -> Result<Response<ReplyBody>, Status> {
        if let Some(message) = answer.message.whole(WHOLE_BYTES_MAX) {
            let (headers, trailers) = (answer.headers, answer.trailers);
            return Ok(reply.unary(answer.method, headers, message, trailers).await);
        }
        let place = self.place(caller)?;
        self.send(reply, answer, place).await
    }

    /// A place for a large list.
    fn place(&self, caller: ShareOwner) -> Result<Place<ShareOwner>, Status> {
        // Idle lists go first: readers that stopped reading must not keep all slots.
        self.give_up_unread(Instant::now());
        let busy = "too many large lists are not read to their end; end some of them first";
        let place = self.places.take(caller);
        place.ok_or_else(|| Status::resource_exhausted(busy))
    }

    /// Forgets lists that ended, and drops those that nobody reads.
    fn give_up_unread(&self, now: Instant) {
        lock(&self.open).retain(|open| {
            let Some(open) = open.upgrade() else {
                return false;
            };
            // A locked list is being read right now, so it is not idle. Waiting for the lock here
            // would stall the new list behind a slow one.
            let Ok(mut sending) = open.try_lock() else {
                return true;
            };
            if sending.as_ref().is_some_and(|list| list.due() <= now) {
                *sending = None;
            }
            sending.is_some()
        });
    }

    async fn send(
        &self,
        reply: Reply,
        answer: ListReply,
        place: Place<ShareOwner>,
    ) -> Result<Response<ReplyBody>, Status> {
        let mut list = answer
            .message
            .written(reply.protocol.codec, answer.method)?;
        let is_connect = reply.protocol.framing == Framing::ConnectUnary;
        let (mut kept, mut promised) = (Vec::new(), None);
        if !is_connect {
            let length = length(&mut list).await?;
            kept.extend(frame_header(0, length));
            promised = Some(kept.len() + length);
        }
        kept.extend_from_slice(&list.before);
        // A frame of gRPC tells its length, which nobody knows of what is not compressed yet.
        let compression = match is_connect {
            true => reply.compression,
            false => Compression::Identity,
        };
        let reply = Reply {
            compression,
            ..reply
        };
        let packer = StreamCompressor::begin(compression)
            .map_err(|_| Status::resource_exhausted("no memory to compress the answer"))?;
        let now = Instant::now();
        let unsent = UnsentList {
            reply,
            list,
            next: 0,
            kept,
            sent: 0,
            promised,
            packer,
            end: (!is_connect).then(|| End {
                outcome: Ok(()),
                trailers: answer.trailers.clone(),
            }),
            is_written: false,
            read_at: now,
            until: answer.deadline.unwrap_or(now + DEADLINE_MAX),
            _place: place,
        };
        let mut response = reply.head(answer.headers, self.body(unsent));
        if is_connect {
            as_headers(response.headers_mut(), &answer.trailers);
        }
        reply.name_compression(&mut response);
        Ok(response)
    }

    fn body(&self, unsent: UnsentList) -> ReplyBody {
        let unsent = Arc::new(Mutex::new(Some(unsent)));
        lock(&self.open).push(Arc::downgrade(&unsent));
        body(unsent)
    }
}

/// Bytes of the list's message. Other tasks run while a long list is counted.
async fn length(list: &mut WrittenList) -> Result<usize, Status> {
    let mut length = list.before.len() + list.after.len();
    let mut pause_at = CHUNK_BYTES;
    for index in 0..list.count() {
        length += list.len_of(index)?;
        if length >= pause_at {
            pause_at = length + CHUNK_BYTES;
            tokio::task::yield_now().await;
        }
    }
    match u32::try_from(length) {
        Ok(_) => Ok(length),
        Err(_) => Err(Status::resource_exhausted(
            "the list is larger than a message of gRPC can be; ask for a part of it",
        )),
    }
}

fn body(sending: Arc<Mutex<Option<UnsentList>>>) -> ReplyBody {
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
                // The compressor took it all.
                SendStep::Nothing => tokio::task::yield_now().await,
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The next part of an answer.
enum SendStep {
    Frame(Frame<Bytes>),
    Nothing,
    Failed(Abandoned),
    Ended,
}

/// A list that is being sent.
struct UnsentList {
    reply: Reply,
    list: WrittenList,
    /// Index of the next item.
    next: usize,
    /// Bytes that go before the next item.
    kept: Vec<u8>,
    /// Bytes so far, before compression.
    sent: usize,
    /// How many there must be at the end, where the head of the frame told.
    promised: Option<usize>,
    packer: StreamCompressor,
    /// Status and trailers after the message.
    end: Option<End>,
    /// The whole message is written.
    is_written: bool,
    read_at: Instant,
    until: Instant,
    _place: Place<ShareOwner>,
}

impl std::fmt::Debug for UnsentList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnsentList")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl UnsentList {
    /// When it gives its place up unless more of it is read.
    fn due(&self) -> Instant {
        self.until.min(self.read_at + UNREAD_AFTER)
    }

    fn step(&mut self, now: Instant) -> SendStep {
        if self.until <= now {
            return SendStep::Failed(Abandoned("its time is over"));
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
            // Base64 of three bytes each: no padding before the end.
            self.kept = part.split_off(part.len() - part.len() % 3);
        }
        self.sent += part.len();
        let is_other = self.promised.is_some_and(|promised| promised != self.sent);
        // gRPC promised the length in the frame header. A shorter or longer message would shift
        // every frame after it, so the stream is aborted instead.
        if self.is_written && is_other {
            return Err(Abandoned("its length is not what its head says"));
        }
        let packed = self.packer.push(part, self.is_written);
        let packed = packed.map_err(|_| Abandoned("it cannot be compressed"))?;
        Ok(self.reply.armour(packed.into()))
    }
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
