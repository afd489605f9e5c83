//! The answers of a streaming call, as the caller reads them.

use std::marker::PhantomData;

use bytes::Bytes;
use prost::Message;

use crate::frame::{self, FrameError, Kind};
use crate::frames::Frames;
use crate::limits::RESPONSE_LEN_MAX;
use crate::status::LinkStatus;

/// Decodes an answer.
pub(crate) fn decode<M: Message + Default>(payload: &[u8]) -> Result<M, LinkStatus> {
    M::decode(payload).map_err(|_| LinkStatus::internal("the answer does not decode"))
}

/// The answers of one call. Dropping it cancels the call on the server.
#[derive(Debug)]
pub struct Streaming<M> {
    frames: Frames,
    /// `true` after the end frame or an error.
    over: bool,
    message: PhantomData<fn() -> M>,
}

impl<M: Message + Default> Streaming<M> {
    pub(crate) fn new(frames: Frames) -> Self {
        Self {
            frames,
            over: false,
            message: PhantomData,
        }
    }

    /// Reads the next answer. `None` means that the server ended the stream successfully.
    /// Cancel-safe.
    pub async fn message(&mut self) -> Result<Option<M>, LinkStatus> {
        let answer = self.read_on().await?;
        Ok(answer.map(|(message, _)| message))
    }

    /// Like [`Self::message`], with the bytes that the answer was decoded from, for callers that
    /// store the message as it was signed.
    pub async fn message_and_bytes(&mut self) -> Result<Option<(M, Bytes)>, LinkStatus> {
        let answer = self.read_on().await?;
        // The frame is a slice of a received chunk. Storing it uncopied would keep the whole chunk
        // in memory.
        Ok(answer.map(|(message, bytes)| (message, Bytes::copy_from_slice(&bytes))))
    }

    async fn read_on(&mut self) -> Result<Option<(M, Bytes)>, LinkStatus> {
        if self.over {
            return Ok(None);
        }
        let answer = self.read().await;
        // An error ends the stream too: after a malformed frame the start of the next one is unknown.
        self.over = !matches!(answer, Ok(Some(_)));
        answer
    }

    async fn read(&mut self) -> Result<Option<(M, Bytes)>, LinkStatus> {
        let (kind, payload) = self.frames.next(RESPONSE_LEN_MAX).await?;
        match kind {
            Kind::Message => Ok(Some((decode(&payload)?, payload))),
            Kind::End => frame::decode_end(&payload)?.map(|()| None),
            Kind::Header => Err(FrameError::Unexpected.into()),
        }
    }
}
