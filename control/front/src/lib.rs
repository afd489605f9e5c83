//! The HTTP front of the public API: Connect, gRPC and gRPC-Web on one port.
//!
//! A public method takes one message and answers with one or, rarely, a stream. The front reads the
//! whole request, converts it to protobuf, asks the [`Gate`] once (authentication, authorisation,
//! validation), calls the tonic service behind it in plain gRPC, and writes the answer in the caller's
//! protocol. For methods that take a stream (reflection only) it asks the gate before the first
//! message. A handler answers a list with its rows; the front encodes them as the caller reads.
//!
//! Invariants:
//! - no handler runs without the gate's consent, in any protocol and for any stream;
//! - every request is bounded in size, and the requests in memory are bounded per token and in total;
//! - the answers that callers have not read are bounded in memory, per caller and in total; of a large
//!   list at most one chunk is ready.

mod call;
mod call_labels;
mod calls;
mod compression;
mod cors;
mod end;
mod envelope;
mod facade;
mod facade_call;
mod gate;
mod get;
mod held;
mod inner;
mod listed;
pub mod listing;
mod protocol;
mod reply;
mod requests;
mod rooms;
mod sending;
pub mod serve;
mod status;
pub mod traces;
mod unsent_list;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method as HttpMethod, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Limited};
use proto_public::Method;
use tower::BoxError;

use crate::traces::Tracing;

pub use calls::CallStats;
pub use envelope::MESSAGE_BYTES_MAX;
pub use facade::HttpFacade;
pub use gate::{Call, Gate, Respelled};
use held::UnreadAnswers;
pub use inner::InnerService;
pub use reply::{Abandoned, ReplyBody};
pub use rooms::{CALLS_MAX, CALLS_PER_TOKEN_MAX};
use rooms::{Rooms, ShareOwner};
use sending::OpenLists;

/// Path prefix of the pages for browsers.
const PAGES_PATH: &str = "/auth/";
/// Largest head of a request, bytes, in any version of HTTP. The library's own bound for HTTP/1 is
/// its buffer of hundreds of KiB.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Largest form of a page, bytes.
const FORM_BYTES_MAX: usize = 16 << 10;
/// Time limit for the body of a refused request. After it the connection is closed.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// Pages for browsers beside the API, below `/auth/`.
#[tonic::async_trait]
pub trait BrowserPages: std::fmt::Debug + Send + Sync + 'static {
    /// Answers one request with its complete body.
    async fn answer(&self, request: Request<Bytes>, peer: Option<SocketAddr>) -> Response<Bytes>;
}

/// The HTTP service of the public API.
#[derive(Debug)]
pub struct Front<S, G> {
    gate: Arc<G>,
    pages: Option<Arc<dyn BrowserPages>>,
    facade: Option<Arc<dyn HttpFacade>>,
    inner: S,
    rooms: Arc<Rooms>,
    lists: Arc<OpenLists>,
    unread: Arc<UnreadAnswers>,
    methods: Methods,
    message_bytes_max: usize,
    stats: CallStats,
    tracing: Tracing,
}

/// Finds a method by its path.
pub type Methods = fn(&str) -> Option<&'static Method>;

impl<S: Clone, G> Clone for Front<S, G> {
    fn clone(&self) -> Self {
        Self {
            gate: Arc::clone(&self.gate),
            pages: self.pages.clone(),
            facade: self.facade.clone(),
            inner: self.inner.clone(),
            rooms: Arc::clone(&self.rooms),
            lists: Arc::clone(&self.lists),
            unread: Arc::clone(&self.unread),
            methods: self.methods,
            message_bytes_max: self.message_bytes_max,
            stats: self.stats.clone(),
            tracing: self.tracing.clone(),
        }
    }
}

impl<S: InnerService, G: Gate> Front<S, G> {
    /// Puts the gate and the protocols in front of `inner`.
    pub fn new(gate: Arc<G>, inner: S) -> Self {
        Self {
            gate,
            pages: None,
            facade: None,
            inner,
            rooms: Arc::new(Rooms::new()),
            lists: Arc::new(OpenLists::new()),
            unread: Arc::new(UnreadAnswers::new()),
            methods: proto_public::method,
            message_bytes_max: MESSAGE_BYTES_MAX,
            stats: CallStats::default(),
            tracing: Tracing::default(),
        }
    }

    /// Sets the tracing of calls.
    #[must_use]
    pub fn with_tracing(self, tracing: Tracing) -> Self {
        Self { tracing, ..self }
    }

    /// Sets the counters of calls.
    #[must_use]
    pub fn with_stats(self, stats: CallStats) -> Self {
        Self { stats, ..self }
    }

    /// Adds pages for browsers.
    #[must_use]
    pub fn with_pages(self, pages: Arc<dyn BrowserPages>) -> Self {
        Self {
            pages: Some(pages),
            ..self
        }
    }

    /// Serves another HTTP API: the facade answers every request but that of health.
    #[must_use]
    pub fn with_facade(self, facade: Arc<dyn HttpFacade>) -> Self {
        Self {
            facade: Some(facade),
            ..self
        }
    }

    /// Serves another contract than the public API, with its own bound on messages, bytes.
    #[must_use]
    pub fn with_methods(self, methods: Methods, message_bytes_max: usize) -> Self {
        Self {
            methods,
            message_bytes_max,
            ..self
        }
    }

    /// Answers one HTTP request.
    pub async fn handle<B>(
        &self,
        request: Request<B>,
        peer: Option<SocketAddr>,
    ) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        if head_bytes(&parts) > HEAD_BYTES_MAX {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return match &self.facade {
                Some(facade) => {
                    let reason = "the head of the request is too large";
                    facade.refuse(&parts, status, reason).map(reply::full)
                }
                None => reply::plain(status, "the head of the request is too large\n"),
            };
        }
        if parts.method == HttpMethod::GET && parts.uri.path() == "/healthz" {
            return reply::plain(StatusCode::OK, "ok\n");
        }
        if let Some(facade) = &self.facade {
            return self.by_facade(facade, parts, body, peer).await;
        }
        if let Some(pages) = &self.pages
            && parts.uri.path().starts_with(PAGES_PATH)
        {
            return self.page(pages, parts, body, peer).await;
        }
        if cors::is_preflight(&parts.method, &parts.headers) {
            return cors::preflight(&parts.headers);
        }
        let version = parts.version;
        let mut body = Some(body);
        let mut response = self.call(parts, &mut body, peer).await;
        if let Some(unread) = body
            && version < Version::HTTP_2
        {
            discard(unread).await;
        }
        cors::expose(&mut response);
        response
    }

    /// Answers with a page that scripts of other sites may not read.
    async fn page<B>(
        &self,
        pages: &Arc<dyn BrowserPages>,
        parts: http::request::Parts,
        body: B,
        peer: Option<SocketAddr>,
    ) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let busy = || reply::plain(StatusCode::SERVICE_UNAVAILABLE, "try again in a moment\n");
        let Ok(mut arriving) = self.rooms.pages.arrive(ShareOwner::of(None, peer)) else {
            return busy();
        };
        let Ok(body) = arriving.read(body, FORM_BYTES_MAX).await else {
            return reply::plain(StatusCode::BAD_REQUEST, "the request's body is not whole\n");
        };
        let Ok(_running) = arriving.run() else {
            return busy();
        };
        let answer = pages.answer(Request::from_parts(parts, body), peer).await;
        answer.map(reply::full)
    }
}

/// Bytes of a request's path and headers.
fn head_bytes(parts: &http::request::Parts) -> usize {
    let path = parts
        .uri
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    let headers = parts.headers.iter();
    path + headers
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum::<usize>()
}

/// Reads and drops the body of a refused request, within the bounds of any request. In HTTP/1 a client
/// that still writes would see a broken connection instead of the answer.
async fn discard<B>(body: B)
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let mut limited = std::pin::pin!(Limited::new(body, MESSAGE_BYTES_MAX));
    let all = async { while let Some(Ok(_)) = limited.frame().await {} };
    // A client that is slower or sends more loses the connection.
    let _late = tokio::time::timeout(DISCARD_TIMEOUT, all).await;
}

impl<S: InnerService, G: Gate, B> tower::Service<Request<B>> for Front<S, G>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let front = self.clone();
        let peer = request.extensions().get::<SocketAddr>().copied();
        Box::pin(async move { Ok(front.handle(request, peer).await) })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::future::join_all;
    use futures::{FutureExt, poll};
    use http::header::{AUTHORIZATION, CONTENT_TYPE};
    use http::{Extensions, HeaderMap};
    use http_body_util::Full;
    use tokio::sync::Notify;
    use tonic::{Code, Status};

    use super::*;

    /// A gate that admits all callers once it is opened; the token is the header.
    struct SlowGate(Notify);

    #[tonic::async_trait]
    impl Gate for SlowGate {
        type Ticket = ();

        fn screen(
            &self,
            _method: &'static Method,
            headers: &HeaderMap,
        ) -> Result<Option<Arc<str>>, Status> {
            let token = headers.get(AUTHORIZATION);
            Ok(token.map(|token| token.to_str().unwrap().into()))
        }
        async fn admit(&self, _call: Call<'_>) -> Result<(Extensions, ()), Status> {
            self.0.notified().await;
            Ok((Extensions::new(), ()))
        }
        async fn finish(&self, _ticket: (), _code: Code) {}
    }

    #[tokio::test]
    async fn calls_of_a_token_have_a_limit() {
        let gate = Arc::new(SlowGate(Notify::new()));
        let front = Front::new(Arc::clone(&gate), tonic::service::Routes::default());
        let call = |token: &str| {
            let request = Request::post("/metalstack.api.v2.VersionService/Get")
                .header(CONTENT_TYPE, "application/json")
                .header(AUTHORIZATION, token)
                .body(Full::<Bytes>::default())
                .unwrap();
            front.handle(request, None).map(|answer| answer.status())
        };
        let mut waiting = pin!(join_all((0..CALLS_PER_TOKEN_MAX).map(|_| call("a"))));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert_eq!(call("a").await, StatusCode::TOO_MANY_REQUESTS);
        let mut other = pin!(call("b"));
        assert!(
            poll!(other.as_mut()).is_pending(),
            "another token's call runs"
        );
        gate.0.notify_waiters();
        // Nothing is behind the front in this test.
        assert!(
            waiting
                .await
                .iter()
                .all(|status| *status == StatusCode::NOT_IMPLEMENTED)
        );
        assert_eq!(other.await, StatusCode::NOT_IMPLEMENTED);
        gate.0.notify_one();
        assert_eq!(call("a").await, StatusCode::NOT_IMPLEMENTED);
    }
}
