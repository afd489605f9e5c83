//! Answers with large lists: items are encoded as the reader asks for more.
//!
//! A list holds a place until its last byte is written to the connection or its reader is gone. A list
//! that is not read for too long loses its place to the next one.
//!
//! Invariant: at most one chunk of an answer is encoded and not yet written to the connection.

use std::sync::{Arc, Mutex, Weak};

use http::{HeaderMap, Response};
use proto_bounds::{Place, Places};
use proto_public::Method;
use tokio::time::Instant;
use tonic::Status;

use super::compression::{Compression, StreamCompressor};
use super::end::End;
use super::envelope::frame_header;
use super::listed::{ListMessage, WrittenList};
use super::protocol::{DEADLINE_MAX, Framing};
use super::reply::{Reply, ReplyBody, as_headers};
use super::rooms::ShareOwner;
use super::unsent_list::{CHUNK_BYTES, UnsentList, body, lock};

/// Largest list that is encoded as a whole, bytes of protobuf. A larger one is sent in chunks.
const WHOLE_BYTES_MAX: usize = 256 << 10;
/// Most large lists in progress. Each holds a chunk, the window of a compressor and its rows.
/// Further lists are refused, unless one that is not read gives up its place.
const LISTS_MAX: usize = 512;
/// Most large lists in progress of one caller.
const LISTS_EACH_MAX: usize = 16;
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

impl OpenLists {
    pub(super) fn new() -> Self {
        Self {
            places: Places::new(LISTS_MAX, LISTS_EACH_MAX),
            open: Mutex::default(),
        }
    }

    /// Answers with a list: a small one as a whole, a large one in chunks as the caller reads.
    ///
    /// # Errors
    /// `resource_exhausted` if too many large lists are open, in all or of this caller, or if the
    /// list exceeds the largest message of gRPC; `internal` if the method's answer has no such list.
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

    /// Takes a place for a large list.
    fn place(&self, caller: ShareOwner) -> Result<Place<ShareOwner>, Status> {
        // Idle lists go first: readers that stopped reading must not keep all slots.
        self.give_up_unread(Instant::now());
        let busy = "too many large lists are not read to their end; end some of them first";
        let place = self.places.take(caller);
        place.ok_or_else(|| Status::resource_exhausted(busy))
    }

    /// Forgets the lists that have ended, and drops those whose time to be read is over.
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
        // gRPC sends a message's length before it, and the length of a compressed message is known
        // only at its end. So gRPC gets a large list uncompressed.
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

/// The length of the list's message, bytes. Yields once per chunk, so that a long list does not
/// keep the thread from other tasks.
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

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
