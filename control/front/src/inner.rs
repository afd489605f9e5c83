//! Calls the tonic services behind the front: always plain gRPC.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::{Extensions, HeaderMap, HeaderValue, Method as HttpMethod, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use super::end::{End, GRPC_STATUS, handler_headers, no_status};
use super::envelope::{joined, take_frame};

/// A service behind the front, such as `tonic::service::Routes`.
pub trait InnerService:
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

impl<S> InnerService for S where
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

/// Header of the deadline in gRPC.
const GRPC_TIMEOUT: &str = "grpc-timeout";

/// Headers of the transport, which the handlers' metadata does not repeat.
const TRANSPORT_HEADERS: [&str; 12] = [
    "accept-encoding",
    "authorization",
    "connect-timeout-ms",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "connect-content-encoding",
    "grpc-encoding",
    GRPC_TIMEOUT,
    "host",
    "transfer-encoding",
];

/// Longest deadline in milliseconds that gRPC can express: eight digits.
const TIMEOUT_MS_MAX: u128 = 99_999_999;

/// The request for a handler. The deadline is sent as in gRPC, whatever the protocol of the caller is.
pub(super) fn request(
    path: &str,
    headers: &HeaderMap,
    extensions: Extensions,
    timeout: Option<Duration>,
    body: Body,
) -> Request<Body> {
    let mut request = Request::new(body);
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
    if let Some(timeout) = timeout {
        let ms = timeout.as_millis().min(TIMEOUT_MS_MAX);
        if let Ok(value) = HeaderValue::from_str(&format!("{ms}m")) {
            out.insert(GRPC_TIMEOUT, value);
        }
    }
    request
}

/// The answer of a handler, message by message.
#[derive(Debug)]
pub(super) struct HandlerAnswer {
    /// Headers that the handler set.
    pub(super) headers: HeaderMap,
    body: Body,
    /// Bytes read from the body and not yet returned. A service writes each message as one chunk,
    /// so large ones are passed on as they are and not copied.
    buffer: Bytes,
    /// Set once the status is known; nothing is read from the body afterwards.
    end: Option<End>,
}

impl HandlerAnswer {
    /// Reads the head of the answer.
    pub(super) fn new(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let (headers, end) = if parts.headers.contains_key(GRPC_STATUS) {
            (HeaderMap::new(), Some(End::of_trailers(parts.headers)))
        } else {
            (handler_headers(parts.headers), None)
        };
        Self {
            headers,
            body,
            buffer: Bytes::new(),
            end,
        }
    }

    /// The end of an answer without messages. `None` means that messages follow.
    pub(super) fn early(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The next message, or the end.
    pub(super) async fn next(&mut self) -> Result<Bytes, End> {
        loop {
            if let Some((_, message)) = take_frame(&mut self.buffer) {
                return Ok(message);
            }
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            self.read_more().await;
        }
    }

    async fn read_more(&mut self) {
        if self.body.is_end_stream() {
            self.end = Some(End::error(no_status()));
            return;
        }
        match self.body.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => self.buffer = joined(&self.buffer, data),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.end = Some(End::of_trailers(trailers));
                    }
                }
            },
            Some(Err(status)) => self.end = Some(End::error(status)),
            None => self.end = Some(End::error(no_status())),
        }
    }

    /// The single message of a unary answer, and its trailers.
    ///
    /// # Errors
    /// The answer has no message: the status of the handler, or `internal` if that is success.
    pub(super) async fn unary(mut self) -> Result<(Bytes, HeaderMap), End> {
        let message = self.next().await.map_err(|end| End {
            outcome: end.outcome.and_then(|()| Err(no_message())),
            ..end
        })?;
        match self.next().await {
            Ok(_) => Err(End::error(Status::internal(
                "the method answered with more than one message",
            ))),
            Err(end) if end.outcome.is_err() => Err(end),
            Err(end) => Ok((message, end.trailers)),
        }
    }
}

fn no_message() -> Status {
    Status::internal("the method answered without a message")
}
