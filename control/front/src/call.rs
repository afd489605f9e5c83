//! The steps of one call: protocol, method, request, gate, handler, answer.

use std::net::SocketAddr;
use std::sync::Arc;

use base_telemetry::traces::now_ns;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method as HttpMethod, Request, Response, StatusCode, Version};
use http_body_util::Full;
use proto_public::Method;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{BoxError, ServiceExt};

use super::compression::Compression;
use super::end::End;
use super::inner::HandlerAnswer;
use super::listed::ListMessage;
use super::protocol::{Framing, WireProtocol};
use super::reply::{self, Reply, ReplyBody};
use super::requests::IncomingStream;
use super::rooms::{ANONYMOUS_BYTES_MAX, ShareOwner};
use super::sending::ListReply;
use super::status::too_large;
use super::{Call, Front, Gate, InnerService, Respelled, envelope, get, inner, requests};
use crate::listing::Listing;
use crate::serve::Connection;
use crate::traces::CallSpan;

/// Length of a frame's header, bytes. A framed body may be longer than its message by this much.
const FRAME_BYTES: usize = 5;
/// Path prefix of a dry run: the call reports its outcome and changes nothing.
const TRIAL_PREFIX: &str = "/dry-run";

/// The method of a call, and whether the call is a dry run.
#[derive(Clone, Copy)]
struct RequestedMethod {
    method: &'static Method,
    /// `true` for a dry run.
    trial: bool,
}

impl<S: InnerService, G: Gate> Front<S, G> {
    /// Answers one call. Takes the body only if it is read; a refused call leaves it to the caller.
    pub(super) async fn call<B>(
        &self,
        mut parts: Parts,
        body: &mut Option<B>,
        peer: Option<SocketAddr>,
    ) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let method = (self.methods)(parts.uri.path());
        if parts.method == HttpMethod::GET && method.is_some_and(Method::is_read) {
            let mut response = match get::into_post(&mut parts) {
                Ok(message) => {
                    let mut message = Some(Full::new(message));
                    self.post(parts, &mut message, peer).await
                }
                Err(text) => reply::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text),
            };
            // The answer depends on the token, so no cache may serve it to another caller.
            let nowhere = HeaderValue::from_static("no-store");
            response
                .headers_mut()
                .insert(http::header::CACHE_CONTROL, nowhere);
            return response;
        }
        self.post(parts, body, peer).await
    }

    /// Answers a call whose message is in the body.
    async fn post<B>(
        &self,
        parts: Parts,
        body: &mut Option<B>,
        peer: Option<SocketAddr>,
    ) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if parts.method != HttpMethod::POST {
            let text = "methods of the API take POST\n";
            let mut response = reply::plain(StatusCode::METHOD_NOT_ALLOWED, text);
            let allow = HeaderValue::from_static("POST");
            response.headers_mut().insert(http::header::ALLOW, allow);
            return response;
        }
        let Some(protocol) = WireProtocol::from_headers(&parts.headers) else {
            let text = "use a content type of Connect, gRPC or gRPC-Web, e.g. application/json\n";
            return reply::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        };
        if protocol.framing == Framing::Grpc && parts.version < Version::HTTP_2 {
            let text = "gRPC needs HTTP/2; Connect and gRPC-Web do not\n";
            return reply::plain(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text);
        }
        let reply = Reply {
            protocol,
            compression: protocol.answer_compression(&parts.headers),
        };
        let whole = parts.uri.path();
        // A dry run is marked by the path, not by a header: a server without dry runs would ignore a
        // header and carry out the call.
        let (path, trial) = match whole.strip_prefix(TRIAL_PREFIX) {
            Some(path) => (path, true),
            None => (whole, false),
        };
        let Some(method) = (self.methods)(path) else {
            let mut response = reply.error(unimplemented(path));
            if protocol.framing == Framing::ConnectUnary {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            return response;
        };
        if let Err(text) = fits(protocol.framing, method) {
            return reply::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        }
        let timer = self.stats.begin(method);
        match self
            .dispatch(reply, RequestedMethod { method, trial }, &parts, body, peer)
            .await
        {
            Ok((code, response)) => {
                timer.end(code);
                response
            }
            Err(status) => {
                timer.end(status.code());
                reply.error(name_unimplemented(status, path))
            }
        }
    }

    async fn dispatch<B>(
        &self,
        reply: Reply,
        requested: RequestedMethod,
        head: &Parts,
        body: &mut Option<B>,
        peer: Option<SocketAddr>,
    ) -> Result<(Code, Response<ReplyBody>), Status>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let RequestedMethod { method, trial } = requested;
        let (protocol, headers, began) = (reply.protocol, &head.headers, now_ns());
        protocol.check_version(headers)?;
        let timeout = protocol.timeout(headers)?;
        let deadline = reply::deadline(timeout);
        let compression = protocol.request_compression(headers)?;
        // Screened before the body is read: a caller without the right to call must not fill memory.
        let token = self.gate.screen(method, headers)?;
        if let (Some(token), Some(connection)) = (&token, head.extensions.get::<Arc<Connection>>())
        {
            connection.belongs_to(token);
        }
        let bytes_max = self.bytes_max(token.is_some());
        let caller = ShareOwner::of(token, peer);
        let mut running = None;
        let (message, body) = if method.client_streaming {
            let place = self.rooms.stream(caller.clone())?;
            let body = body.take().ok_or_else(no_body)?;
            let incoming = IncomingStream {
                codec: protocol.codec,
                compression,
                method,
                bytes_max,
                version: head.version,
            };
            (Bytes::new(), requests::body(incoming, body, place))
        } else {
            let mut arriving = self.rooms.of(&caller).arrive(caller.clone())?;
            let body = body.take().ok_or_else(no_body)?;
            let body = arriving.read(body, bytes_max + FRAME_BYTES).await?;
            let message = message(protocol, compression, method, body, bytes_max)?;
            arriving.hold(message.len())?;
            running = Some(arriving.run()?);
            let body = Body::new(Full::new(envelope::frame(0, &message)));
            (message, body)
        };
        let work = async {
            let call = Call {
                method,
                headers,
                peer,
                message: &message,
                trial,
            };
            let (mut extensions, ticket) = self.gate.admit(call).await?;
            let body = match extensions.remove::<Respelled>() {
                Some(Respelled(message)) => Body::new(Full::new(envelope::frame(0, &message))),
                None => body,
            };
            let span = self.tracing.begin(method, headers, began);
            let request = inner::request(&method.path, headers, extensions, timeout, body);
            let answer = self.answer(reply, caller, method, request, deadline);
            let (code, response) = CallSpan::within(span.as_ref(), answer).await;
            self.gate.finish(ticket, code).await;
            if let Some(span) = span {
                span.end(code);
            }
            Ok((code, response))
        };
        let done = match deadline {
            None => work.await,
            Some(at) if at <= Instant::now() => Err(reply::deadline_exceeded()),
            Some(at) => tokio::time::timeout_at(at, work)
                .await
                .unwrap_or_else(|_| Err(reply::deadline_exceeded())),
        };
        drop(running);
        done
    }

    /// Largest message of a caller, bytes.
    fn bytes_max(&self, has_token: bool) -> usize {
        if has_token {
            self.message_bytes_max
        } else {
            self.message_bytes_max.min(ANONYMOUS_BYTES_MAX)
        }
    }

    /// Runs the handler. Returns the answer and its status, which is OK for a stream that has begun.
    async fn answer(
        &self,
        reply: Reply,
        caller: ShareOwner,
        method: &'static Method,
        request: Request<Body>,
        deadline: Option<Instant>,
    ) -> (Code, Response<ReplyBody>) {
        let handler = self.inner.clone().oneshot(request);
        let mut response = match handler.await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let listing = response.extensions_mut().remove::<Listing>();
        let mut answer = HandlerAnswer::new(response);
        if let Some(End {
            outcome: Err(status),
            trailers,
        }) = answer.early()
        {
            let status = name_unimplemented(status.clone(), &method.path);
            let code = status.code();
            // In an answer without messages (Trailers-Only) the metadata of the handler is in the head, so
            // it goes into the head of the reply too.
            return (code, reply.end(trailers.clone(), End::error(status)));
        }
        if method.server_streaming {
            return (Code::Ok, reply.streaming(method, answer, deadline));
        }
        let headers = std::mem::take(&mut answer.headers);
        let (message, trailers) = match answer.unary().await {
            Ok(said) => said,
            Err(end) => {
                let code = end
                    .outcome
                    .as_ref()
                    .map_or_else(Status::code, |()| Code::Ok);
                return (code, reply.end(headers, end));
            }
        };
        let answered = match listing {
            None => Ok(reply.unary(method, headers, message, trailers).await),
            Some(listing) => {
                let list = ListReply {
                    method,
                    message: ListMessage::new(listing, message),
                    headers,
                    trailers,
                    deadline,
                };
                self.lists.answer(reply, list, caller.clone()).await
            }
        };
        match answered.and_then(|response| self.unread.hold(caller, response)) {
            Ok(response) => (Code::Ok, response),
            Err(status) => (status.code(), reply.error(status)),
        }
    }
}

/// The protobuf bytes of the request's one message.
fn message(
    protocol: WireProtocol,
    compression: Compression,
    method: &Method,
    body: Bytes,
    bytes_max: usize,
) -> Result<Bytes, Status> {
    let message = match protocol.framing {
        Framing::ConnectUnary if body.len() > bytes_max => {
            return Err(too_large(bytes_max));
        }
        Framing::ConnectUnary => compression.expand(&body, bytes_max)?,
        Framing::GrpcWeb { text: true } => {
            let binary = STANDARD
                .decode(body)
                .map_err(|_| Status::invalid_argument("the request is not base64"))?;
            envelope::single_message(binary.into(), compression, bytes_max)?
        }
        Framing::ConnectStream | Framing::Grpc | Framing::GrpcWeb { .. } => {
            envelope::single_message(body, compression, bytes_max)?
        }
    };
    protocol.codec.to_proto(method, message)
}

/// Refuses a method that cannot be called in this framing.
fn fits(framing: Framing, method: &Method) -> Result<(), &'static str> {
    let streams = method.client_streaming || method.server_streaming;
    match framing {
        Framing::ConnectUnary if streams => {
            Err("this method streams: use application/connect+json or application/connect+proto\n")
        }
        Framing::ConnectStream if !streams => {
            Err("this method does not stream: use application/json or application/proto\n")
        }
        Framing::GrpcWeb { text: true } if method.client_streaming => {
            Err("a stream of requests cannot be base64: use application/grpc-web+proto\n")
        }
        _ => Ok(()),
    }
}

fn no_body() -> Status {
    Status::internal("the body of the request was read before")
}

fn unimplemented(path: &str) -> Status {
    let name = path.trim_start_matches('/');
    Status::unimplemented(format!("this server does not implement {name}"))
}

/// Adds the method's name to the status of a generated service that has no implementation.
fn name_unimplemented(status: Status, path: &str) -> Status {
    let unnamed = !status.message().contains(' ') || status.message().starts_with("Not yet");
    if status.code() == Code::Unimplemented && unnamed {
        return unimplemented(path);
    }
    status
}
