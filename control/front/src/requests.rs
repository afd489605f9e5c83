//! A stream of request messages, decoded one by one as they arrive.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::Version;
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, StreamBody};
use proto_bounds::Place;
use proto_public::Method;
use tonic::Status;
use tonic::body::Body;
use tower::BoxError;

use super::compression::Compression;
use super::discard;
use super::envelope::{cut, frame, joined, open, peek_frame, take_frame};
use super::protocol::Codec;
use super::rooms::ShareOwner;
use super::status::too_large;

/// Encoding and limits of a request stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct IncomingStream {
    pub(super) codec: Codec,
    pub(super) compression: Compression,
    pub(super) method: &'static Method,
    /// Largest message, as it arrives and after decompression.
    pub(super) bytes_max: usize,
    /// Version of HTTP.
    pub(super) version: Version,
}

/// Longest time between two parts of a stream. After it the stream ends and its place is free.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);

struct MessageReader<B> {
    incoming: IncomingStream,
    body: Pin<Box<B>>,
    /// Bytes read and not yet returned: less than one message, plus data that came with its end.
    buffer: Bytes,
    /// Held until the stream ends.
    _place: Place<ShareOwner>,
}

/// The messages as the body of a plain gRPC request. A malformed message ends it.
pub(super) fn body<B>(incoming: IncomingStream, body: B, place: Place<ShareOwner>) -> Body
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let reader = MessageReader {
        incoming,
        body: Box::pin(body),
        buffer: Bytes::new(),
        _place: place,
    };
    let messages = stream::unfold(Some(reader), |state| async move {
        let mut reader = state?;
        match reader.next().await {
            Ok(None) => None,
            Ok(Some(message)) => Some((Ok(Frame::data(frame(0, &message))), Some(reader))),
            Err(status) => {
                if reader.incoming.version < Version::HTTP_2 {
                    discard(reader.body).await;
                }
                Some((Err(status), None))
            }
        }
    });
    Body::new(StreamBody::new(messages))
}

impl<B> MessageReader<B>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let IncomingStream {
            codec,
            compression,
            method,
            bytes_max,
            ..
        } = self.incoming;
        loop {
            // Checked on the prefix, so that a message that is too large is not buffered.
            if peek_frame(&self.buffer).is_some_and(|(_, length)| length > bytes_max) {
                return Err(too_large(bytes_max));
            }
            if let Some((flags, message)) = take_frame(&mut self.buffer) {
                let message = open(flags, &message, compression, bytes_max)?;
                return codec.to_proto(method, message).map(Some);
            }
            let more = tokio::time::timeout(MESSAGE_TIMEOUT, self.body.frame()).await;
            match more.map_err(|_| too_slow())? {
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(cut()),
                Some(Err(_)) => return Err(Status::cancelled("the request ended early")),
                Some(Ok(more)) => {
                    if let Ok(data) = more.into_data() {
                        self.buffer = joined(&self.buffer, data);
                    }
                }
            }
        }
    }
}

fn too_slow() -> Status {
    let seconds = MESSAGE_TIMEOUT.as_secs();
    Status::deadline_exceeded(format!("the stream was silent for {seconds} s"))
}
