//! The interface of a facade: another HTTP API on a listener of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};

/// An HTTP API that is not the contract's. The front bounds its requests and answers in size, number
/// and memory, by caller; everything else is the facade's.
#[tonic::async_trait]
pub trait HttpFacade: std::fmt::Debug + Send + Sync + 'static {
    /// The name of the quota that a request counts against, from its head alone: bodies are read
    /// afterwards. `None` means that it counts against its client network, with all requests without
    /// a valid token.
    fn screen(&self, head: &Parts) -> Option<Arc<str>>;

    /// Answers one request with its complete body.
    async fn answer(&self, head: &Parts, body: Bytes, peer: Option<SocketAddr>) -> Response<Bytes>;

    /// Answers a request that the front refuses itself, in the shape in which the facade's clients read
    /// refusals.
    fn refuse(&self, head: &Parts, status: StatusCode, reason: &str) -> Response<Bytes>;
}
