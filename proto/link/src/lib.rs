//! Calls between agents and control over mutually authenticated QUIC.
//!
//! One connection per agent, one bidirectional stream for each call in flight. The caller sends a
//! header frame (version, method, deadline) and one message; the callee answers messages and one
//! end frame with a status. Dropping a call ends its stream, and the callee's handler is dropped
//! with it. After a call of one answer that worked, a caller that did not finish its side may send
//! the next call on the same stream, where the server's hello permits it.
//!
//! Invariants:
//! - Who may call what is decided in one place, [`Router::admit`], from the generated method
//!   table, before a handler sees a byte.
//! - A session ends when its certificate ends or is revoked; there are no tickets and no 0-RTT.
//! - Every frame, stream, session and wait has a named bound in [`limits`].
//! - A session counts as open only after the server's hello: in TLS 1.3 a client would otherwise
//!   take a refused certificate for a session.
//! - What control wants of a bearer's key comes as a notice on the open session, never by ending it.
//! - A new certificate means a new session first, then the old one is drained and closed.
//!
//! Entry points: [`MeshServer`], [`MeshClient`].

mod admission;
pub mod client;
mod dial;
pub mod frame;
mod frames;
pub mod limits;
pub mod method;
pub mod notice;
mod open;
mod revocations;
pub mod router;
mod runtime;
pub mod server;
mod session;
mod socket;
pub mod stats;
pub mod status;
mod supervisor;
mod transport;
mod udp;

pub use admission::AdmissionRate;
pub use client::{MeshClient, MeshClientConfig, SessionState, Streaming};
pub use dial::{DialError, Socket};
pub use method::{Audit, MethodSpec};
pub use notice::Notice;
pub use proto_identity::{CallerKind, PeerIdentity};
pub use revocations::{NeverRevoked, Revocations};
pub use router::{CallFuture, Responder, Router, Service, Sink, decode_request};
pub use runtime::runtime;
pub use server::{MeshServer, MeshServerConfig, Presence, TlsSetter};
pub use session::Peer;
pub use stats::{CallCount, Handshake, LinkStats, TurnedAway};
pub use status::{Code, LinkStatus};
pub use transport::Keepalive;

/// Another name of [`LinkStatus`], for callers that see it as their error.
pub type LinkError = LinkStatus;

/// What both ends negotiate.
pub const ALPN: &[u8] = b"metalmesh-mesh/1";

/// Milliseconds since the epoch, from the system clock.
pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
