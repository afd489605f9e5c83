//! Writes a handler's answer in the protocol of its caller.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, HeaderName, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use proto_public::{Method, json};
use tokio::time::Instant;
use tonic::Status;

use super::compression::Compression;
use super::end::End;
use super::envelope::{FLAG_COMPRESSED, FLAG_CONNECT_END, FLAG_WEB_TRAILERS, frame, frame_header};
use super::inner::HandlerAnswer;
use super::protocol::{Codec, Framing, WireProtocol};
use super::status::{connect_code, connect_end, connect_error, grpc_trailers, web_trailers};

/// Body of every answer.
pub type ReplyBody = UnsyncBoxBody<Bytes, Abandoned>;

/// The reason why an answer ended before its last byte.
#[derive(Debug, thiserror::Error)]
#[error("the answer was given up: {0}")]
pub struct Abandoned(pub(super) &'static str);

/// Largest message, bytes, that is copied behind the header of its frame, so that both are sent
/// together. A larger one is not copied.
const COPIED_BYTES_MAX: usize = 64 << 10;
/// Connect's prefix for trailers that travel as headers.
const TRAILER_PREFIX: &str = "trailer-";
/// Encodings of answers beside identity.
const OFFERED: &str = "zstd, gzip";

/// A body of bytes in memory.
pub(super) fn full(bytes: impl Into<Bytes>) -> ReplyBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A plain HTTP answer to a request that is not a call.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<ReplyBody> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The status of a call whose deadline has passed.
pub(super) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the call did not end within its deadline")
}

/// The time left, as a deadline.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// The form in which a caller expects its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    /// Framing, codec and rules of statuses.
    pub(super) protocol: WireProtocol,
    /// Compression of messages that are large enough for it.
    pub(super) compression: Compression,
}

impl Reply {
    /// An answer without any message: the error alone.
    pub(super) fn error(self, status: Status) -> Response<ReplyBody> {
        self.end(HeaderMap::new(), End::error(status))
    }

    /// An answer without any message.
    pub(super) fn end(self, headers: HeaderMap, end: End) -> Response<ReplyBody> {
        match (self.protocol.framing, &end.outcome) {
            (Framing::ConnectUnary, Err(status)) => {
                let mut response = Response::new(full(connect_error(status).to_string()));
                *response.status_mut() = connect_code(status.code()).1;
                *response.headers_mut() = headers;
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                self.offer(&mut response);
                as_headers(response.headers_mut(), &end.trailers);
                response
            }
            // A status without messages goes into the head, so that a refused stream fails when it is
            // opened.
            (Framing::Grpc, Err(_)) if headers.is_empty() => {
                self.head(grpc_trailers(end), full(Bytes::new()))
            }
            _ => self.head(headers, frames(vec![self.end_frame(end)])),
        }
    }

    /// A unary answer.
    pub(super) async fn unary(
        self,
        method: &Method,
        headers: HeaderMap,
        message: Bytes,
        trailers: HeaderMap,
    ) -> Response<ReplyBody> {
        let message = match encode(self.protocol.codec, method, message) {
            Ok(message) => message,
            Err(status) => return self.error(status),
        };
        let small = self.compression.shrink(&message).await;
        if self.protocol.framing == Framing::ConnectUnary {
            let is_small = small.is_some();
            let mut response = self.head(headers, full(small.unwrap_or(message)));
            as_headers(response.headers_mut(), &trailers);
            if is_small {
                self.name_compression(&mut response);
            }
            return response;
        }
        let end = self.end_frame(End {
            outcome: Ok(()),
            trailers,
        });
        let (flags, message) = flagged(small, message);
        let parts = if message.len() < COPIED_BYTES_MAX || self.is_armoured() {
            vec![self.message_frame(flags, &message), end]
        } else {
            let header = Bytes::copy_from_slice(&frame_header(flags, message.len()));
            vec![Frame::data(header), Frame::data(message), end]
        };
        let mut response = self.head(headers, frames(parts));
        self.name_compression(&mut response);
        response
    }

    /// A streaming answer, ended by the handler or at the deadline.
    pub(super) fn streaming(
        self,
        method: &'static Method,
        mut answer: HandlerAnswer,
        deadline: Option<Instant>,
    ) -> Response<ReplyBody> {
        let headers = std::mem::take(&mut answer.headers);
        let frames = stream::unfold(Some(answer), move |state| async move {
            let mut answer = state?;
            let next = match deadline {
                None => answer.next().await,
                Some(at) => tokio::time::timeout_at(at, answer.next())
                    .await
                    .unwrap_or_else(|_| Err(End::error(deadline_exceeded()))),
            };
            let codec = self.protocol.codec;
            let next = next.and_then(|message| encode(codec, method, message).map_err(End::error));
            Some(match next {
                Ok(message) => {
                    let small = self.compression.shrink(&message).await;
                    let (flags, message) = flagged(small, message);
                    (Ok(self.message_frame(flags, &message)), Some(answer))
                }
                Err(end) => (Ok(self.end_frame(end)), None),
            })
        });
        let mut response = self.head(headers, StreamBody::new(frames).boxed_unsync());
        self.name_compression(&mut response);
        response
    }

    pub(super) fn head(self, headers: HeaderMap, body: ReplyBody) -> Response<ReplyBody> {
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        let content_type = HeaderValue::from_static(self.protocol.content_type());
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        self.offer(&mut response);
        response
    }

    /// Adds the header with the accepted compressions of requests.
    fn offer(self, response: &mut Response<ReplyBody>) {
        let name = HeaderName::from_static(self.protocol.accept_header());
        let offered = HeaderValue::from_static(OFFERED);
        response.headers_mut().insert(name, offered);
    }

    pub(super) fn name_compression(self, response: &mut Response<ReplyBody>) {
        if self.compression != Compression::Identity {
            let name = HeaderName::from_static(self.protocol.encoding_header());
            let value = HeaderValue::from_static(self.compression.name());
            response.headers_mut().insert(name, value);
        }
    }

    fn message_frame(self, flags: u8, message: &[u8]) -> Frame<Bytes> {
        Frame::data(self.armour(frame(flags, message)))
    }

    pub(super) fn end_frame(self, end: End) -> Frame<Bytes> {
        match self.protocol.framing {
            Framing::ConnectUnary => Frame::data(Bytes::new()),
            Framing::ConnectStream => Frame::data(frame(FLAG_CONNECT_END, &connect_end(&end))),
            Framing::Grpc => Frame::trailers(grpc_trailers(end)),
            Framing::GrpcWeb { .. } => {
                let end = frame(FLAG_WEB_TRAILERS, &web_trailers(end));
                Frame::data(self.armour(end))
            }
        }
    }

    /// Base64 of each frame in gRPC-Web's text form.
    pub(super) fn armour(self, frame: Bytes) -> Bytes {
        if self.is_armoured() {
            STANDARD.encode(frame).into()
        } else {
            frame
        }
    }

    pub(super) fn is_armoured(self) -> bool {
        matches!(self.protocol.framing, Framing::GrpcWeb { text: true })
    }
}

fn frames(parts: Vec<Frame<Bytes>>) -> ReplyBody {
    StreamBody::new(stream::iter(parts.into_iter().map(Ok))).boxed_unsync()
}

/// The compressed message if there is one, else the message itself, with the flag of its frame.
fn flagged(small: Option<Bytes>, message: Bytes) -> (u8, Bytes) {
    match small {
        Some(small) => (FLAG_COMPRESSED, small),
        None => (0, message),
    }
}

/// Trailers of a unary Connect answer. Connect sends them as headers with a prefix.
pub(super) fn as_headers(headers: &mut HeaderMap, trailers: &HeaderMap) {
    for (name, value) in trailers {
        let name = format!("{TRAILER_PREFIX}{name}");
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            headers.append(name, value.clone());
        }
    }
}

/// A message in a codec.
///
/// # Errors
/// `internal` if it cannot be written as JSON.
pub(super) fn encode(codec: Codec, method: &Method, message: Bytes) -> Result<Bytes, Status> {
    match codec {
        Codec::Proto => Ok(message),
        Codec::Json => json::from_proto(&method.output, &message)
            .map(Bytes::from)
            .map_err(|_| Status::internal("the answer cannot be written as JSON")),
    }
}
