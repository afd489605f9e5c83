//! Reassembles the frames of one stream.

use std::mem;

use bytes::{Bytes, BytesMut};
use quinn::{ReadError, RecvStream};

use crate::frame::{FrameError, Kind, first_frame, split_frame};
use crate::status::LinkStatus;

/// Largest chunk read from a stream at once, bytes. Nearly every request and answer is smaller and
/// arrives in one chunk.
const CHUNK_LEN: usize = 16 * 1024;

/// The reason why no further frame follows.
#[derive(Debug)]
pub(crate) enum FrameStop {
    /// The bytes are not a frame, or the stream ended inside of one.
    Frame(FrameError),
    /// The session broke, or the other side cancelled the call.
    Session(ReadError),
}

impl From<FrameStop> for LinkStatus {
    fn from(stop: FrameStop) -> Self {
        match stop {
            FrameStop::Frame(error) => error.into(),
            FrameStop::Session(error) => Self::unavailable(format!("session broke: {error}")),
        }
    }
}

/// Reads the frames of a stream. A frame that arrives in one chunk is not copied.
///
/// Memory grows with the bytes that have arrived, never with the length that a prefix announces: a
/// peer must send a megabyte before it occupies one.
#[derive(Debug)]
pub(crate) struct Frames {
    stream: RecvStream,
    arrived: Bytes,
    /// Start of an incomplete frame. Empty while `arrived` is not.
    pieces: BytesMut,
}

impl Frames {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            arrived: Bytes::new(),
            pieces: BytesMut::new(),
        }
    }

    /// Reads the next frame. `max` bounds a message, bytes; other kinds have their own bound.
    /// Cancel-safe. The returned payload keeps the whole chunk it arrived in alive.
    pub(crate) async fn next(&mut self, max: usize) -> Result<(Kind, Bytes), FrameStop> {
        loop {
            if let Some(frame) = split_frame(&mut self.arrived, max).map_err(FrameStop::Frame)? {
                return Ok(frame);
            }
            match self.stream.read_chunk(CHUNK_LEN, true).await {
                // The chunk goes into `self` before the next await, so dropping this future loses
                // no bytes.
                Ok(Some(chunk)) => self.add(chunk.bytes, max).map_err(FrameStop::Frame)?,
                Ok(None) => return Err(FrameStop::Frame(FrameError::Broken)),
                Err(error) => return Err(FrameStop::Session(error)),
            }
        }
    }

    fn add(&mut self, chunk: Bytes, max: usize) -> Result<(), FrameError> {
        if self.is_empty() {
            self.arrived = chunk;
            return Ok(());
        }
        self.pieces.extend_from_slice(&mem::take(&mut self.arrived));
        self.pieces.extend_from_slice(&chunk);
        // The prefix is judged as soon as it is complete: an oversized frame is refused before its
        // payload is buffered.
        if first_frame(&self.pieces, max)?.is_some() {
            self.arrived = self.pieces.split().freeze();
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.pieces.is_empty()
    }

    /// Waits for the first bytes of another frame. `false` means that the stream has ended.
    pub(crate) async fn more(&mut self) -> bool {
        if !self.is_empty() {
            return true;
        }
        match self.stream.read_chunk(CHUNK_LEN, true).await {
            Ok(Some(chunk)) => {
                self.arrived = chunk.bytes;
                true
            }
            Ok(None) | Err(_) => false,
        }
    }

    /// Reads the end of the stream if it has arrived already; `true` if so. quinn sends a
    /// STOP_SENDING frame for a stream that is dropped before its end was read.
    pub(crate) async fn see_end(&mut self) -> bool {
        if !self.is_empty() {
            return false;
        }
        tokio::select! {
            biased;
            more = self.more() => !more,
            () = std::future::ready(()) => false,
        }
    }
}
