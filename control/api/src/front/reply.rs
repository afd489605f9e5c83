//! Writes a handler's answer in the protocol of its caller.

use std::convert::Infallible;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use proto_public::{Method, json};
use tokio::time::Instant;
use tonic::Status;

use super::envelope::{FLAG_CONNECT_END, FLAG_WEB_TRAILERS, frame, frame_header};
use super::inner::Answer;

use super::protocol::{Codec, Framing, Protocol};
use super::status::{connect_code, connect_end, connect_error, grpc_trailers, web_trailers};

/// Body of every answer.
pub type ReplyBody = UnsyncBoxBody<Bytes, Infallible>;

/// Messages up to here are copied behind their frame's header, so that both travel together.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// A body that is there at once.
pub(super) fn full(bytes: impl Into<Bytes>) -> ReplyBody {
    Full::new(bytes.into()).boxed_unsync()
}

/// An answer without any message: the error alone.
pub(super) fn error(protocol: Protocol, status: Status) -> Response<ReplyBody> {
    match protocol.framing {
        Framing::ConnectUnary => connect_unary_error(&status),
        Framing::Grpc => {
            let mut response = head(protocol, full(Bytes::new()));
            response.headers_mut().extend(grpc_trailers(&Err(status)));
            response
        }
        Framing::ConnectStream | Framing::GrpcWeb { .. } => {
            let end = end_frame(protocol, Err(status));
            head(
                protocol,
                StreamBody::new(stream::iter([Ok(end)])).boxed_unsync(),
            )
        }
    }
}

/// A unary answer.
pub(super) fn unary(protocol: Protocol, method: &Method, message: Bytes) -> Response<ReplyBody> {
    let message = match encode(protocol.codec, method, message) {
        Ok(message) => message,
        Err(status) => return error(protocol, status),
    };
    if protocol.framing == Framing::ConnectUnary {
        return head(protocol, full(message));
    }
    let end = end_frame(protocol, Ok(()));
    let frames = if message.len() < COPIED_BYTES_MAX || is_armoured(protocol) {
        vec![Ok(message_frame(protocol, &message)), Ok(end)]
    } else {
        let header = Bytes::copy_from_slice(&frame_header(0, message.len()));
        vec![Ok(Frame::data(header)), Ok(Frame::data(message)), Ok(end)]
    };
    head(
        protocol,
        StreamBody::new(stream::iter(frames)).boxed_unsync(),
    )
}

/// A streaming answer, ended by the handler or at the deadline.
pub(super) fn streaming(
    protocol: Protocol,
    method: &'static Method,
    answer: Answer,
    deadline: Option<Instant>,
) -> Response<ReplyBody> {
    let frames = stream::unfold(Some(answer), move |state| async move {
        let mut answer = state?;
        let next = match deadline {
            None => answer.next().await,
            Some(at) => tokio::time::timeout_at(at, answer.next())
                .await
                .unwrap_or_else(|_| Err(Err(deadline_exceeded()))),
        };
        let next = next.and_then(|message| encode(protocol.codec, method, message).map_err(Err));
        Some(match next {
            Ok(message) => (Ok(message_frame(protocol, &message)), Some(answer)),
            Err(outcome) => (Ok(end_frame(protocol, outcome)), None),
        })
    });
    head(protocol, StreamBody::new(frames).boxed_unsync())
}

/// The status of a call whose time is up.
pub(super) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the call did not end within its deadline")
}

/// Time left as a deadline.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

fn encode(codec: Codec, method: &Method, message: Bytes) -> Result<Bytes, Status> {
    match codec {
        Codec::Proto => Ok(message),
        Codec::Json => json::from_proto(&method.output, &message)
            .map(Bytes::from)
            .map_err(|_| Status::internal("the answer cannot be written as JSON")),
    }
}

fn head(protocol: Protocol, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(protocol.content_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn connect_unary_error(status: &Status) -> Response<ReplyBody> {
    let mut response = Response::new(full(connect_error(status).to_string()));
    *response.status_mut() = connect_code(status.code()).1;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A plain HTTP answer for what is no call at all.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<ReplyBody> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn message_frame(protocol: Protocol, message: &[u8]) -> Frame<Bytes> {
    Frame::data(armour(protocol, frame(0, message)))
}

fn end_frame(protocol: Protocol, outcome: Result<(), Status>) -> Frame<Bytes> {
    match protocol.framing {
        Framing::ConnectUnary => Frame::data(Bytes::new()),
        Framing::ConnectStream => Frame::data(frame(FLAG_CONNECT_END, &connect_end(&outcome))),
        Framing::Grpc => Frame::trailers(grpc_trailers(&outcome)),
        Framing::GrpcWeb { .. } => {
            let end = frame(FLAG_WEB_TRAILERS, &web_trailers(&outcome));
            Frame::data(armour(protocol, end))
        }
    }
}

/// Base64 of each frame in gRPC-Web's text form.
fn armour(protocol: Protocol, frame: Bytes) -> Bytes {
    if is_armoured(protocol) {
        STANDARD.encode(frame).into()
    } else {
        frame
    }
}

fn is_armoured(protocol: Protocol) -> bool {
    matches!(protocol.framing, Framing::GrpcWeb { text: true })
}
