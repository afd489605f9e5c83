//! Requests of a facade: read within the bounds of their caller, and answered.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode, Version};
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
        let Ok(mut arriving) = self.rooms.of(&caller).arrive(caller.clone()) else {
            return busy();
        };
        let mut body = std::pin::pin!(body);
        let read = arriving.read(body.as_mut(), bytes_max).await;
        let body = match read {
            Ok(body) => body,
            Err(status) if status.code() == Code::ResourceExhausted => {
                // In HTTP/1 a client that still writes would see no answer.
                if parts.version < Version::HTTP_2 {
                    discard(body).await;
                }
                let text = "the request is too large, or too many are in memory\n";
                return reply::plain(StatusCode::PAYLOAD_TOO_LARGE, text);
            }
            Err(_) => {
                let text = "the request's body is not whole\n";
                return reply::plain(StatusCode::BAD_REQUEST, text);
            }
        };
        let Ok(_running) = arriving.run() else {
            return busy();
        };
        let answer = facade.answer(Request::from_parts(parts, body), peer).await;
        let held = self.unread.hold(caller, answer.map(reply::full));
        held.unwrap_or_else(|_| busy())
    }
}

fn busy() -> Response<ReplyBody> {
    reply::plain(StatusCode::SERVICE_UNAVAILABLE, "try again in a moment\n")
}
