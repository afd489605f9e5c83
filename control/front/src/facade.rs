//! The interface of a facade: another HTTP API on a listener of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};

/// An HTTP API that is not the contract's. The front bounds its requests and answers in size, number
/// and memory, by caller; everything else is the facade's.
#[tonic::async_trait]
pub trait HttpFacade: std::fmt::Debug + Send + Sync + 'static {
    /// The name of the quota that a request counts against, from its head alone: bodies are read
    /// afterwards. `None` means that it counts against its client network, with all requests without
    /// a valid token.
    fn screen(&self, head: &Parts) -> Option<Arc<str>>;

    /// Answers one request with its complete body.
    async fn answer(&self, request: Request<Bytes>, peer: Option<SocketAddr>) -> Response<Bytes>;
}
