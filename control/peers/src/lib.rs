//! Carries the store's channels between control nodes: mTLS over QUIC, one UDP port per node.
//!
//! Each channel is a bidirectional stream. Entries, heartbeats, votes and forwarded writes have
//! streams of one connection, a snapshot has a connection of its own, so that it costs neither a
//! heartbeat nor an entry's latency.
//!
//! Invariants:
//! - Both sides show a certificate of the peers' intermediate, which is the only trust anchor: an
//!   agent, a machine or a node of another cluster gets no further than the handshake.
//! - Who calls a node by its number and address reaches that number or nobody.
//! - A node that was removed is turned away from then on.
//! - A connection ends when the caller's certificate does.
//!
//! Entry point: [`PeerLink`].

mod inbound;
mod link;
mod settings;

pub use link::PeerLink;

/// What both ends negotiate.
pub const ALPN: &[u8] = b"metalmesh-peers/1";
