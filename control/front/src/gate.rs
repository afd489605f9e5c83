//! The interface by which the front asks a gate about each call.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderMap};
use proto_public::Method;
use tonic::{Code, Status};

/// One call as the gate sees it.
#[derive(Debug)]
pub struct Call<'a> {
    /// Which method.
    pub method: &'static Method,
    /// The request's HTTP headers.
    pub headers: &'a HeaderMap,
    /// The caller's address.
    pub peer: Option<SocketAddr>,
    /// The request message, protobuf; empty where callers send a stream.
    pub message: &'a Bytes,
    /// `true` for a dry run.
    pub trial: bool,
}

/// The request as its handler is to see it, protobuf: the gate leaves it in the extensions when it
/// wrote ids otherwise than the caller did.
#[derive(Debug, Clone)]
pub struct Respelled(pub Bytes);

/// Decides about every call before its handler runs, and hears how each ended.
#[tonic::async_trait]
pub trait Gate: Send + Sync + 'static {
    /// State of the gate for one call, until it ends; dropped when the caller disconnects.
    type Ticket: Send + 'static;

    /// Looks at the headers alone, before the body is read: who cannot call this method at all
    /// does not get to fill memory. Returns the name of the share that the call counts in, which
    /// all tokens of a user have in common; `None` counts the call for its network, among those of
    /// strangers.
    ///
    /// # Errors
    /// The status that the caller gets instead.
    fn screen(
        &self,
        method: &'static Method,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<str>>, Status>;

    /// Lets a call in: what the handler finds in its request's extensions, and the ticket. By then
    /// this node has every write that was acknowledged before the call.
    ///
    /// # Errors
    /// The status that the caller gets instead.
    async fn admit(&self, call: Call<'_>) -> Result<(Extensions, Self::Ticket), Status>;

    /// Hears how a call that was let in ended.
    async fn finish(&self, ticket: Self::Ticket, code: Code);
}
