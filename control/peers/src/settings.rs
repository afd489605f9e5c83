//! quinn's settings among control nodes.

use std::sync::Arc;
use std::time::Duration;

use quinn::{IdleTimeout, TransportConfig, VarInt};

/// How long opening a connection may take.
pub(crate) const DIAL_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a handshake of a caller may take.
pub(crate) const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Handshakes at the same time. A cluster has seven nodes at most, which open a few each.
pub(crate) const HANDSHAKES_MAX: usize = 256;
/// ... of one IPv4 address, or of one network of 2^64 IPv6 addresses.
pub(crate) const HANDSHAKES_PER_ADDRESS_MAX: usize = 16;
/// ... before callers must prove their address: a forger must not take the places of a node whose
/// address it names.
pub(crate) const HANDSHAKES_UNPROVED_MAX: usize = 8;
/// How long the end of all connections may take.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(2);
/// How often it is looked whether a connected node was removed.
pub(crate) const REMOVAL_LOOK: Duration = Duration::from_secs(1);
/// A peer that is silent for longer is gone.
const IDLE_TIMEOUT_MS: u32 = 3000;
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// Control nodes are near each other.
const INITIAL_RTT: Duration = Duration::from_millis(10);
/// Channels of one connection.
const CHANNELS_MAX: u32 = 256;
/// Bytes that may be on their way on one channel.
const STREAM_WINDOW: u32 = 8 << 20;
/// Bytes that may be on their way on one connection.
const CONNECTION_WINDOW: u32 = 32 << 20;

fn transport() -> Arc<TransportConfig> {
    let mut t = TransportConfig::default();
    let idle = IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS));
    t.max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(INITIAL_RTT)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(CHANNELS_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    Arc::new(t)
}

pub(crate) fn client(tls: rustls::ClientConfig) -> Result<quinn::ClientConfig, String> {
    let crypto =
        quinn::crypto::rustls::QuicClientConfig::try_from(tls).map_err(|e| e.to_string())?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport());
    Ok(config)
}

pub(crate) fn server(tls: rustls::ServerConfig) -> Result<quinn::ServerConfig, String> {
    let crypto =
        quinn::crypto::rustls::QuicServerConfig::try_from(tls).map_err(|e| e.to_string())?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport());
    config.max_incoming(HANDSHAKES_MAX);
    Ok(config)
}
