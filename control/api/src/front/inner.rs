//! Calls the tonic services behind the front: always plain gRPC, always one request message.

use std::convert::Infallible;
use std::future::Future;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{Extensions, HeaderMap, HeaderValue, Method as HttpMethod, Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;

use super::envelope::{frame, take_frame};
use super::status::GRPC_STATUS;

/// What the front can sit in front of: `tonic::service::Routes` and its like.
pub trait Inner:
    Service<
        Request<Body>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Inner for S where
    S: Service<
            Request<Body>,
            Response = Response<Body>,
            Error = Infallible,
            Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// Headers of the transport, which the handlers' metadata does not repeat.
const TRANSPORT_HEADERS: [&str; 10] = [
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "connect-content-encoding",
    "grpc-encoding",
    "grpc-timeout",
    "host",
    "transfer-encoding",
];

/// The request that a handler sees.
pub(super) fn request(
    path: &str,
    headers: &HeaderMap,
    extensions: Extensions,
    message: &[u8],
) -> Request<Body> {
    let mut request = Request::new(Body::new(Full::new(frame(0, message))));
    *request.method_mut() = HttpMethod::POST;
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    *request.extensions_mut() = extensions;
    let out = request.headers_mut();
    for (name, value) in headers {
        if !TRANSPORT_HEADERS.contains(&name.as_str()) {
            out.append(name, value.clone());
        }
    }
    out.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    out.insert(TE, HeaderValue::from_static("trailers"));
    request
}

/// A handler's answer, message by message.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    /// What was read and not yet taken. A service writes each message as one chunk, so large
    /// ones are passed on as they are and not copied.
    buffer: Bytes,
    /// Set once the status is known; nothing is read from the body afterwards.
    outcome: Option<Result<(), Status>>,
}

impl Answer {
    /// Reads the head of the answer.
    pub(super) fn new(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let outcome = parts
            .headers
            .contains_key(GRPC_STATUS)
            .then(|| outcome(&parts.headers));
        Self {
            body,
            buffer: Bytes::new(),
            outcome,
        }
    }

    /// The status, when the answer is nothing but a status.
    pub(super) fn early(&self) -> Option<&Result<(), Status>> {
        self.outcome.as_ref()
    }

    /// The next message, or the end: `Ok` or the error status.
    pub(super) async fn next(&mut self) -> Result<Bytes, Result<(), Status>> {
        loop {
            if let Some((_, message)) = take_frame(&mut self.buffer) {
                return Ok(message);
            }
            if let Some(outcome) = &self.outcome {
                return Err(outcome.clone());
            }
            self.read_more().await;
        }
    }

    async fn read_more(&mut self) {
        if self.body.is_end_stream() {
            self.outcome = Some(Err(no_status()));
            return;
        }
        match self.body.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if self.buffer.is_empty() => self.buffer = data,
                Ok(data) => {
                    let mut joined = BytesMut::with_capacity(self.buffer.len() + data.len());
                    joined.extend_from_slice(&self.buffer);
                    joined.extend_from_slice(&data);
                    self.buffer = joined.freeze();
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.outcome = Some(outcome(&trailers));
                    }
                }
            },
            Some(Err(status)) => self.outcome = Some(Err(status)),
            None => self.outcome = Some(Err(no_status())),
        }
    }

    /// The single message of a unary answer.
    ///
    /// # Errors
    /// The handler's status; `internal` when it ended well without a message.
    pub(super) async fn unary(mut self) -> Result<Bytes, Status> {
        match self.next().await {
            Ok(message) => match self.next().await {
                Err(Err(status)) => Err(status),
                _ => Ok(message),
            },
            Err(Err(status)) => Err(status),
            Err(Ok(())) => Err(Status::internal("the method answered without a message")),
        }
    }
}

fn outcome(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() == Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(no_status()),
    }
}

fn no_status() -> Status {
    Status::internal("the method ended without a status")
}
