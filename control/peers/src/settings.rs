//! Limits and quinn settings of the peer link.

use std::sync::Arc;
use std::time::Duration;

use quinn::{IdleTimeout, TransportConfig, VarInt};

/// Time limit for opening a connection. Beyond it the node counts as out of reach.
pub(crate) const DIAL_TIME_MAX: Duration = Duration::from_secs(2);
/// Time limit for the handshake of a caller. Beyond it the handshake is dropped.
pub(crate) const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Most handshakes at the same time; further ones are refused. A cluster has at most seven nodes,
/// which open a few connections each.
pub(crate) const HANDSHAKES_MAX: usize = 256;
/// Most handshakes at the same time of one IPv4 address or one IPv6 /64 network; further ones are
/// refused.
pub(crate) const HANDSHAKES_PER_ADDRESS_MAX: usize = 16;
/// Handshakes at the same time from which on callers must prove their address (QUIC retry), so that
/// a forger cannot take the places of a node whose address it uses.
pub(crate) const HANDSHAKES_UNPROVED_MAX: usize = 8;
/// Time limit for closing all connections at the stop of the node. Beyond it they are dropped.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(2);
/// Interval between checks that a connected node was not removed.
pub(crate) const REMOVAL_CHECK: Duration = Duration::from_secs(1);
/// QUIC idle timeout, milliseconds. The connection of a peer that is silent for longer ends.
const IDLE_TIMEOUT_MS: u32 = 3000;
/// Interval of QUIC keep-alive packets; several fit the idle timeout.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// First estimate of the round trip time: control nodes are near each other, and the default of 333
/// ms would delay the first retransmissions.
const INITIAL_RTT: Duration = Duration::from_millis(10);
/// Most channels of one connection. Further ones wait.
const CHANNELS_MAX: u32 = 256;
/// Flow control window of one channel, bytes.
const STREAM_WINDOW: u32 = 8 << 20;
/// Flow control window of one connection, bytes.
const CONNECTION_WINDOW: u32 = 32 << 20;

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let idle = IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS));
    config
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(INITIAL_RTT)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(CHANNELS_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    Arc::new(config)
}

/// Settings of the calling side.
pub(crate) fn client(tls: rustls::ClientConfig) -> Result<quinn::ClientConfig, String> {
    let crypto =
        quinn::crypto::rustls::QuicClientConfig::try_from(tls).map_err(|e| e.to_string())?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport());
    Ok(config)
}

/// Settings of the listening side.
pub(crate) fn server(tls: rustls::ServerConfig) -> Result<quinn::ServerConfig, String> {
    let crypto =
        quinn::crypto::rustls::QuicServerConfig::try_from(tls).map_err(|e| e.to_string())?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport());
    config.max_incoming(HANDSHAKES_MAX);
    Ok(config)
}
