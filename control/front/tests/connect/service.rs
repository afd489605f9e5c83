//! The conformance service in plain gRPC, as handlers behind the front are.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::channel::mpsc::{Sender, channel};
use futures::{FutureExt, SinkExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use prost_types::Any;
use tonic::Status;
use tonic::body::Body;

use crate::wire::{Answer, Definition, Error, Header, Payload, RequestInfo, RpcStatus};
use crate::wire::{stream, unary};

const TYPES: &str = "type.googleapis.com/connectrpc.conformance.v1.";

#[derive(Debug, Clone)]
pub(crate) struct Conformance;

impl tower::Service<Request<Body>> for Conformance {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        answer(request).map(Ok).boxed()
    }
}

/// One call on its way.
struct Call {
    kind: Kind,
    info: RequestInfo,
    body: Body,
    buffer: BytesMut,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unary,
    ServerStream,
    ClientStream,
    BidiStream,
}

async fn answer(request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (kind, input) = match parts.uri.path().rsplit('/').next().unwrap() {
        "Unary" => (Kind::Unary, "UnaryRequest"),
        "ServerStream" => (Kind::ServerStream, "ServerStreamRequest"),
        "ClientStream" => (Kind::ClientStream, "ClientStreamRequest"),
        "BidiStream" => (Kind::BidiStream, "BidiStreamRequest"),
        // As a service that is not there answers.
        _ => return Status::unimplemented("").into_http(),
    };
    let mut call = Call {
        kind,
        info: RequestInfo {
            headers: headers(&parts.headers),
            timeout_ms: timeout(&parts.headers),
            requests: Vec::new(),
        },
        body,
        buffer: BytesMut::new(),
    };
    match call.begin(input).await {
        Ok((definition, full_duplex)) => call.respond(input, definition, full_duplex),
        Err(status) => status.into_http(),
    }
}

impl Call {
    /// Reads what has to be there before the answer begins.
    async fn begin(&mut self, input: &str) -> Result<(Definition, bool), Status> {
        let first = self.next(input).await?;
        let (definition, full_duplex) = match (&first, self.kind) {
            (None, _) => (None, false),
            (Some(message), Kind::Unary | Kind::ClientStream) => (unary(message), false),
            (Some(message), kind) => stream(message, kind == Kind::BidiStream),
        };
        if !full_duplex {
            while self.next(input).await?.is_some() {}
        }
        Ok((definition.unwrap_or_default(), full_duplex))
    }

    /// The next request message, noted.
    async fn next(&mut self, input: &str) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some((header, rest)) = self.buffer.split_first_chunk::<5>() {
                let length = u32::from_be_bytes(*header.last_chunk::<4>().unwrap());
                let length = usize::try_from(length).unwrap();
                if rest.len() >= length {
                    self.buffer.advance(5);
                    let message = self.buffer.split_to(length).freeze();
                    self.info.requests.push(Any {
                        type_url: format!("{TYPES}{input}"),
                        value: message.to_vec(),
                    });
                    return Ok(Some(message));
                }
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(status)) => return Err(status),
                Some(Ok(frame)) => self.buffer.put(frame.into_data().unwrap_or_default()),
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with its call, and the server with the suite"
    )]
    fn respond(self, input: &'static str, wanted: Definition, full_duplex: bool) -> Response<Body> {
        let (sender, receiver) = channel(0);
        let head = map(&wanted.headers);
        tokio::spawn(async move {
            // The caller may be gone.
            let _gone = self.write(sender, input, wanted, full_duplex).await;
        });
        let body = StreamBody::new(receiver.map(Ok::<_, Infallible>));
        let mut response = Response::new(Body::new(body));
        *response.headers_mut() = head;
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", grpc);
        response
    }

    async fn write(
        mut self,
        mut to: Sender<Frame<Bytes>>,
        input: &str,
        mut wanted: Definition,
        full_duplex: bool,
    ) -> Result<(), futures::channel::mpsc::SendError> {
        let pause = Duration::from_millis(wanted.delay_ms.into());
        let is_stream = matches!(self.kind, Kind::ServerStream | Kind::BidiStream);
        let mut data = std::mem::take(&mut wanted.data);
        if !is_stream && wanted.error.is_none() && data.is_empty() {
            data.push(Vec::new());
        }
        if !is_stream && wanted.error.is_some() {
            tokio::time::sleep(pause).await;
        }
        let mut is_first = true;
        let mut is_open = full_duplex;
        for data in data {
            if is_open && !is_first {
                match self.next(input).await {
                    Ok(message) => is_open = message.is_some(),
                    Err(status) => return to.send(trailers(&wanted, Some(of(&status)))).await,
                }
            }
            tokio::time::sleep(pause).await;
            let info = self.told(is_first, is_open);
            to.send(message(data, info)).await?;
            is_first = false;
        }
        let mut error = wanted.error.take();
        if let Some(error) = error.as_mut().filter(|_| is_first) {
            error.details.push(Any {
                type_url: format!("{TYPES}ConformancePayload.RequestInfo"),
                value: self.info.encode_to_vec(),
            });
        }
        to.send(trailers(&wanted, error)).await
    }

    /// What an answer repeats of the request: all at first, then what is new.
    fn told(&mut self, is_first: bool, is_open: bool) -> Option<RequestInfo> {
        if is_first {
            let info = self.info.clone();
            self.info.requests.clear();
            return Some(info);
        }
        is_open.then(|| RequestInfo {
            requests: std::mem::take(&mut self.info.requests),
            ..Default::default()
        })
    }
}

fn of(status: &Status) -> Error {
    Error {
        code: status.code().into(),
        message: Some(status.message().to_owned()),
        details: Vec::new(),
    }
}

fn message(data: Vec<u8>, info: Option<RequestInfo>) -> Frame<Bytes> {
    let payload = Some(Payload { data, info });
    let message = Answer { payload }.encode_to_vec();
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(u32::try_from(message.len()).unwrap());
    out.put_slice(&message);
    Frame::data(out.freeze())
}

fn trailers(wanted: &Definition, error: Option<Error>) -> Frame<Bytes> {
    let mut out = map(&wanted.trailers);
    let error = error.unwrap_or_default();
    out.insert("grpc-status", HeaderValue::from(error.code));
    let message = error.message.unwrap_or_default();
    if error.code != 0 {
        let status = RpcStatus {
            code: error.code,
            message: message.clone(),
            details: error.details,
        };
        let details = STANDARD_NO_PAD.encode(status.encode_to_vec());
        out.insert("grpc-status-details-bin", details.parse().unwrap());
        let escaped: String = url::form_urlencoded::byte_serialize(message.as_bytes())
            .collect::<String>()
            .replace('+', "%20");
        out.insert("grpc-message", escaped.parse().unwrap());
    }
    Frame::trailers(out)
}

fn map(headers: &[Header]) -> HeaderMap {
    let mut out = HeaderMap::new();
    for header in headers {
        for value in &header.value {
            let name: HeaderName = header.name.to_lowercase().parse().unwrap();
            out.append(name, value.parse().unwrap());
        }
    }
    out
}

fn headers(map: &HeaderMap) -> Vec<Header> {
    map.keys()
        .map(|name| Header {
            name: name.to_string(),
            value: map
                .get_all(name)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect(),
        })
        .collect()
}

fn timeout(headers: &HeaderMap) -> Option<i64> {
    let value = headers.get("grpc-timeout")?.to_str().ok()?;
    value.strip_suffix('m')?.parse().ok()
}
