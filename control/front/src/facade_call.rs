//! Requests of a facade: read within the bounds of their caller, and answered.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode, Version};
use tonic::Code;
use tower::BoxError;

use super::facade::HttpFacade;
use super::gate::Gate;
use super::inner::InnerService;
use super::reply::{self, ReplyBody};
use super::rooms::{ANONYMOUS_BYTES_MAX, ShareOwner};
use super::{Front, discard};

/// Largest request of a caller with a valid token, bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A refusal of the front: its status, and the reason for people.
type FrontRefusal = (StatusCode, &'static str);

/// A bound on requests or answers is reached.
const BUSY: FrontRefusal = (StatusCode::SERVICE_UNAVAILABLE, "try again in a moment");

impl<S: InnerService, G: Gate> Front<S, G> {
    /// Answers a request by the facade.
    pub(crate) async fn by_facade<B>(
        &self,
        facade: &Arc<dyn HttpFacade>,
        parts: Parts,
        body: B,
        peer: Option<SocketAddr>,
    ) -> Response<ReplyBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let caller = ShareOwner::of(facade.screen(&parts), peer);
        let bytes_max = match &caller {
            ShareOwner::Token(_) => BODY_BYTES_MAX,
            ShareOwner::Network(_) => ANONYMOUS_BYTES_MAX,
        };
        let refuse = |(status, reason)| facade.refuse(&parts, status, reason).map(reply::full);
        let Ok(mut arriving) = self.rooms.of(&caller).arrive(caller.clone()) else {
            return refuse(BUSY);
        };
        let mut body = std::pin::pin!(body);
        let read = arriving.read(body.as_mut(), bytes_max).await;
        let body = match read {
            Ok(body) => body,
            Err(status) => {
                // In HTTP/1 a client that still writes would see no answer.
                if status.code() == Code::ResourceExhausted && parts.version < Version::HTTP_2 {
                    discard(body).await;
                }
                return refuse(unread(status.code()));
            }
        };
        let Ok(_running) = arriving.run() else {
            return refuse(BUSY);
        };
        let answer = facade.answer(&parts, body, peer).await;
        let held = self.unread.hold(caller, answer.map(reply::full));
        held.unwrap_or_else(|_| refuse(BUSY))
    }
}

/// The refusal of a request whose body could not be read.
const fn unread(code: Code) -> FrontRefusal {
    match code {
        Code::ResourceExhausted => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is too large, or too many are in memory",
        ),
        Code::DeadlineExceeded => (
            StatusCode::REQUEST_TIMEOUT,
            "the request's body took too long",
        ),
        _ => (StatusCode::BAD_REQUEST, "the request's body is not whole"),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;

    use futures::future::join_all;
    use futures::{FutureExt, poll, stream};
    use http::{Extensions, HeaderMap, Method as HttpMethod, Request};
    use http_body::Frame;
    use http_body_util::{BodyExt, Full, StreamBody};
    use proto_public::Method;
    use tokio::sync::Notify;
    use tonic::Status;

    use super::*;
    use crate::{CALLS_PER_TOKEN_MAX, Call};

    /// A gate that no call comes to.
    struct ClosedGate;

    #[tonic::async_trait]
    impl Gate for ClosedGate {
        type Ticket = ();

        fn screen(
            &self,
            _method: &'static Method,
            _headers: &HeaderMap,
        ) -> Result<Option<Arc<str>>, Status> {
            Err(Status::internal("a call came past the facade"))
        }
        async fn admit(&self, _call: Call<'_>) -> Result<(Extensions, ()), Status> {
            Err(Status::internal("a call came past the facade"))
        }
        async fn finish(&self, _ticket: (), _code: Code) {}
    }

    /// A facade of one caller that answers once it is opened. It marks refusals as its own.
    #[derive(Debug, Default)]
    struct SlowFacade(Notify);

    #[tonic::async_trait]
    impl HttpFacade for SlowFacade {
        fn screen(&self, _head: &Parts) -> Option<Arc<str>> {
            Some("caller".into())
        }
        async fn answer(
            &self,
            _head: &Parts,
            _body: Bytes,
            _peer: Option<SocketAddr>,
        ) -> Response<Bytes> {
            self.0.notified().await;
            Response::new(Bytes::from_static(b"done"))
        }
        fn refuse(&self, head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes> {
            let text = format!("{} {} {reason}", head.method, head.uri.path());
            let mut response = Response::new(Bytes::from(text));
            *response.status_mut() = status;
            response
        }
    }

    type TestFront = Front<tonic::service::Routes, ClosedGate>;

    fn front(facade: &Arc<SlowFacade>) -> TestFront {
        let front = Front::new(Arc::new(ClosedGate), tonic::service::Routes::default());
        front.with_facade(Arc::<SlowFacade>::clone(facade))
    }

    /// Status and text of the answer to a request with this body.
    async fn asked<B>(front: &TestFront, body: B) -> (StatusCode, String)
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = Request::builder()
            .method(HttpMethod::POST)
            .uri("/v1/nodes")
            .body(body)
            .unwrap();
        let answer = front.handle(request, None).await;
        let status = answer.status();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(text.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_in_the_words_of_the_facade() {
        let front = front(&Arc::default());
        let large = Full::new(Bytes::from(vec![b'x'; BODY_BYTES_MAX + 1]));
        let (status, text) = asked(&front, large).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(
            text.starts_with("POST /v1/nodes the request is too large"),
            "{text}"
        );
        let broken = stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("gone"))]);
        let (status, text) = asked(&front, StreamBody::new(broken)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(text, "POST /v1/nodes the request's body is not whole");
        let silent = stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let (status, text) = asked(&front, StreamBody::new(silent)).await;
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(text, "POST /v1/nodes the request's body took too long");
    }

    #[tokio::test]
    async fn a_head_that_is_too_large_is_refused_by_the_facade() {
        let front = front(&Arc::default());
        let request = Request::get("/v1/nodes")
            .header("x-large", "x".repeat(crate::HEAD_BYTES_MAX))
            .body(Full::<Bytes>::default())
            .unwrap();
        let answer = front.handle(request, None).await;
        assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(text.starts_with(b"GET /v1/nodes "), "{text:?}");
    }

    #[tokio::test]
    async fn a_facade_that_is_busy_says_so_itself() {
        let facade = Arc::new(SlowFacade::default());
        let front = front(&facade);
        let call = || asked(&front, Full::<Bytes>::default());
        let mut waiting = pin!(join_all((0..CALLS_PER_TOKEN_MAX).map(|_| call())));
        assert!(poll!(waiting.as_mut()).is_pending());
        let (status, text) = call().await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "POST /v1/nodes try again in a moment");
        facade.0.notify_waiters();
        let answers = waiting.map(|answers| answers.len()).await;
        assert_eq!(answers, CALLS_PER_TOKEN_MAX);
    }
}
