//! The sending half of one call on the server.

use std::future::Future;
use std::marker::PhantomData;

use bytes::Bytes;

use crate::frame;
use crate::limits::RESPONSE_LEN_MAX;
use crate::runtime::WriteCount;
use crate::status::LinkStatus;

/// Sends the answers of one call.
#[derive(Debug)]
pub struct Responder {
    stream: quinn::SendStream,
    writes: WriteCount,
    /// `true` while a write is incomplete. A frame after a partial one would be read as its rest.
    torn: bool,
    /// `true` for a unary method: the answer waits for the end frame, so that both go out in one
    /// packet.
    holds: bool,
    held: Option<Bytes>,
}

impl Responder {
    pub(crate) fn new(stream: quinn::SendStream, writes: WriteCount) -> Self {
        Self {
            stream,
            writes,
            torn: false,
            holds: false,
            held: None,
        }
    }

    /// Prepares for a call of a unary or streaming method. The previous call on the same stream may
    /// have been of the other kind.
    pub(crate) fn expect(&mut self, is_streaming: bool) {
        self.holds = !is_streaming;
    }

    /// Sends one message. Waits for flow control while the caller does not read.
    pub async fn send(&mut self, message: &impl prost::Message) -> Result<(), LinkStatus> {
        let frame = frame::encode_message(message, RESPONSE_LEN_MAX)?;
        if self.holds {
            self.held = Some(frame);
            return Ok(());
        }
        self.write(&mut [frame]).await
    }

    /// Sends the end frame, and with `last` ends the stream. `true` if another call may follow.
    pub(crate) async fn end(&mut self, end: &Result<(), LinkStatus>, last: bool) -> bool {
        if self.torn {
            self.abandon();
            return false;
        }
        let answer = self.held.take().unwrap_or_default();
        let written = self.write(&mut [answer, frame::encode_end(end)]).await;
        if last && written.is_ok() {
            // Fails only on a stream that is closed already.
            drop(self.stream.finish());
        }
        !last && written.is_ok()
    }

    /// Returns once the caller has cancelled the call (STOP_SENDING).
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let stopped = self.stream.stopped();
        async move { drop(stopped.await) }
    }

    /// Resets the stream: no complete answer follows.
    pub(crate) fn abandon(&mut self) {
        drop(self.stream.reset(quinn::VarInt::from_u32(1)));
    }

    async fn write(&mut self, frames: &mut [Bytes]) -> Result<(), LinkStatus> {
        // Set before the await and cleared after it: a service that drops its own send, as in a
        // `select!`, leaves a partial frame on the stream.
        self.torn = true;
        // Counted before the write, which wakes the session's send task: the task compares the count
        // when it runs.
        self.writes.wrote();
        self.stream
            .write_all_chunks(frames)
            .await
            .map_err(|_| LinkStatus::cancelled("the caller is gone"))?;
        self.torn = false;
        Ok(())
    }
}

/// A typed [`Responder`] for streams of `M`.
#[derive(Debug)]
pub struct Sink<'a, M> {
    out: &'a mut Responder,
    message: PhantomData<fn(M)>,
}

impl<'a, M: prost::Message> Sink<'a, M> {
    /// Wraps the responder of a streaming call; generated code calls it.
    pub fn new(out: &'a mut Responder) -> Self {
        Self {
            out,
            message: PhantomData,
        }
    }

    /// Sends one message. Waits for flow control while the caller does not read; fails once the
    /// caller is gone.
    pub async fn send(&mut self, message: &M) -> Result<(), LinkStatus> {
        self.out.send(message).await
    }
}
