//! Calls between agents and control over mutually authenticated QUIC.
//!
//! One connection per agent, one bidirectional stream for each call in flight. The caller sends a
//! header frame (version, method, deadline) and one message; the callee answers with messages and
//! one end frame with a status. Dropping a call stops its stream (STOP_SENDING), which drops the
//! callee's handler. After a successful unary call, the caller may send the next call on the same
//! stream if the server's hello permits it.
//!
//! Invariants:
//! - Authorisation of callers is decided in one place, [`Router::admit`], from the generated method
//!   table, before a handler sees a byte.
//! - A session ends when its certificate expires or is revoked; there are no session tickets and no
//!   0-RTT.
//! - Every frame, stream, session and wait has a named bound in [`limits`].
//! - A client counts a session as open only after the server's hello: in TLS 1.3 the client's
//!   handshake completes before the server has judged the client's certificate.
//! - Control requests a key renewal by a notice on the open session, never by closing it.
//! - After a renewal the new session is opened first; then the old one is drained and closed.
//!
//! Entry points: [`MeshServer`], [`MeshClient`].

mod accept;
mod admission;
mod call;
mod call_counts;
pub mod client;
mod client_config;
mod close;
mod deferred;
mod dial;
pub mod frame;
mod frames;
mod handshake_counts;
mod handshakes;
mod kept_streams;
pub mod limits;
mod live;
pub mod method;
pub mod notice;
mod open;
mod peer;
mod presence;
mod responder;
mod revocations;
mod rhythm;
pub mod router;
mod runtime;
pub mod server;
mod session;
mod socket;
pub mod stats;
pub mod status;
mod streaming;
mod supervisor;
mod transport;
mod turned_away;
mod udp;

pub use admission::AdmissionRate;
pub use client::MeshClient;
pub use client_config::{MeshClientConfig, SessionState};
pub use dial::{DialError, Socket};
pub use handshake_counts::Handshake;
pub use method::{Audit, MethodSpec};
pub use notice::Notice;
pub use peer::Peer;
pub use presence::Presence;
pub use proto_identity::{CallerKind, PeerIdentity};
pub use responder::{Responder, Sink};
pub use revocations::{NeverRevoked, Revocations};
pub use router::{CallFuture, Router, Service, decode_request};
pub use runtime::runtime;
pub use server::{MeshServer, MeshServerConfig, TlsSetter};
pub use stats::{CallCount, LinkStats};
pub use status::{Code, LinkStatus};
pub use streaming::Streaming;
pub use transport::Keepalive;
pub use turned_away::TurnedAway;

/// [`LinkStatus`] under the name that callers use for their errors.
pub type LinkError = LinkStatus;

/// The protocol that both ends negotiate (ALPN, RFC 7301).
pub const ALPN: &[u8] = b"metalmesh-mesh/1";

/// Milliseconds since the epoch, from the system clock.
pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
