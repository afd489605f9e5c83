//! Carries the store's channels between control nodes: mTLS over QUIC, one UDP port per node.
//!
//! Each channel is a bidirectional stream. Entries, heartbeats, votes and forwarded writes have
//! streams of one connection. A snapshot has a connection of its own, so that it delays neither
//! heartbeats nor entries.
//!
//! Invariants:
//! - Both sides present a certificate of the peers' intermediate, the only trust anchor: the
//!   handshake of an agent, a machine or a node of another cluster fails.
//! - A caller that dials a node by number and address reaches that node or none.
//! - A node that was removed is turned away from then on.
//! - A connection ends when the certificate of the caller expires.
//!
//! Entry point: [`PeerLink`].

mod close_code;
mod connection_key;
mod inbound;
mod link;
mod settings;

pub use link::PeerLink;

/// ALPN protocol name of the peer link.
pub const ALPN: &[u8] = b"metalmesh-peers/1";
