//! Frames of one stream, as they come.

use std::mem;

use bytes::{Bytes, BytesMut};
use quinn::{ReadError, RecvStream};

use crate::frame::{FrameError, Kind, first_frame, split_frame};
use crate::status::LinkStatus;

/// Bytes that are taken off a stream at once. A call and its answer are smaller, nearly always,
/// and are taken at once.
const CHUNK_LEN: usize = 16 * 1024;

/// Why there is no further frame.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What came is no frame, or the stream ended inside of one.
    Frame(FrameError),
    /// The session broke, or the other side gave the call up.
    Broke(ReadError),
}

impl From<Stop> for LinkStatus {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Frame(error) => error.into(),
            Stop::Broke(error) => Self::unavailable(format!("session broke: {error}")),
        }
    }
}

/// Reads the frames of a stream. Memory grows with what has arrived, not with what a length
/// promises. What arrives in one piece is not copied.
#[derive(Debug)]
pub(crate) struct Frames {
    stream: RecvStream,
    arrived: Bytes,
    /// Pieces of a frame that is not whole; nothing while there is anything in `arrived`.
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

    /// The next frame; `max` bounds a message, other kinds have their own bound. Loses nothing
    /// when the future is dropped before it is done. A frame keeps what arrived with it in memory.
    pub(crate) async fn next(&mut self, max: usize) -> Result<(Kind, Bytes), Stop> {
        loop {
            if let Some(frame) = split_frame(&mut self.arrived, max).map_err(Stop::Frame)? {
                return Ok(frame);
            }
            match self.stream.read_chunk(CHUNK_LEN, true).await {
                Ok(Some(chunk)) => self.add(chunk.bytes, max).map_err(Stop::Frame)?,
                Ok(None) => return Err(Stop::Frame(FrameError::Broken)),
                Err(error) => return Err(Stop::Broke(error)),
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
        if first_frame(&self.pieces, max)?.is_some() {
            self.arrived = self.pieces.split().freeze();
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.pieces.is_empty()
    }

    /// Waits for the begin of another frame; whether there is one before the stream's end.
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

    /// Takes note of the stream's end if it is there already, and says so. A stream that is
    /// dropped before its end was seen costs a word to the other side that nobody needs.
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
