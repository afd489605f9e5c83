//! The interface of the gate, which decides each call.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderMap};
use proto_public::Method;
use tonic::{Code, Status};

/// One call as the gate sees it.
#[derive(Debug)]
pub struct Call<'a> {
    /// The called method.
    pub method: &'static Method,
    /// The request's HTTP headers.
    pub headers: &'a HeaderMap,
    /// The caller's address.
    pub peer: Option<SocketAddr>,
    /// The request message, protobuf. Empty for methods that take a stream.
    pub message: &'a Bytes,
    /// `true` for a dry run.
    pub trial: bool,
}

/// The request for the handler, protobuf, if the gate rewrote the spelling of ids. The gate puts it
/// into the extensions.
#[derive(Debug, Clone)]
pub struct Respelled(pub Bytes);

/// Decides each call before its handler runs, and records how it ended.
#[tonic::async_trait]
pub trait Gate: Send + Sync + 'static {
    /// State of the gate for one call. Dropped without [`Gate::finish`] if the caller disconnects.
    type Ticket: Send + 'static;

    /// Screens a call by its headers alone, before the body is read, so that a caller without any
    /// right to the method cannot fill memory. Returns the name of the quota that the call counts
    /// against, which all tokens of a user share. `None` means that the call counts against its client
    /// network, with all callers without a valid token.
    ///
    /// # Errors
    /// The refusal for the caller.
    fn screen(
        &self,
        method: &'static Method,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<str>>, Status>;

    /// Admits a call. Returns the extensions of the handler's request, and the ticket. When it
    /// returns, this node has applied every write that was acknowledged before the call.
    ///
    /// # Errors
    /// The refusal for the caller.
    async fn admit(&self, call: Call<'_>) -> Result<(Extensions, Self::Ticket), Status>;

    /// Records how an admitted call ended.
    async fn finish(&self, ticket: Self::Ticket, code: Code);
}
