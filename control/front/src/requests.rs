//! A stream of request messages, opened one by one as they come.

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
use super::rooms::Caller;
use super::status::too_large;

/// How the messages of a stream come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incoming {
    pub(super) codec: Codec,
    pub(super) compression: Compression,
    pub(super) method: &'static Method,
    /// Largest message, as it arrives and after decompression.
    pub(super) bytes_max: usize,
    /// Of HTTP.
    pub(super) version: Version,
}

/// Time between two parts of a stream: who says nothing for longer gives its place to others.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);

struct Reader<B> {
    incoming: Incoming,
    body: Pin<Box<B>>,
    /// What was read and not yet taken: less than one message and what came with its end.
    buffer: Bytes,
    /// Held as long as the stream is.
    _place: Place<Caller>,
}

/// The messages as the body of a plain gRPC request. What cannot be read ends it.
pub(super) fn body<B>(incoming: Incoming, body: B, place: Place<Caller>) -> Body
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let reader = Reader {
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

impl<B> Reader<B>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let Incoming {
            codec,
            compression,
            method,
            bytes_max,
            ..
        } = self.incoming;
        loop {
            // Before the message is there: one that is too large is not waited for.
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
