//! quinn's settings of both ends.

use std::sync::Arc;
use std::time::Duration;

use quinn::{
    AckFrequencyConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, IdleTimeout,
    TransportConfig, VarInt,
};
use rand::Rng as _;
use ring::hmac;

use crate::limits::{
    IDLE_TIMEOUT, INCOMING_MAX, INITIAL_RTT, KEEP_ALIVE, PATIENT_IDLE_TIMEOUT, PATIENT_KEEP_ALIVE,
    SESSION_WINDOW, STREAM_WINDOW, STREAMS_AT_FIRST,
};

/// How soon a client notices that its node died without a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keepalive {
    /// [`IDLE_TIMEOUT`] after a ping: agents that others rely on.
    #[default]
    Prompt,
    /// [`PATIENT_IDLE_TIMEOUT`] after a ping: machines that wait for somebody who wants them.
    /// There are thousands at a node, and pings are all that they cost it.
    Patient,
}

impl Keepalive {
    const fn ping(self) -> Duration {
        match self {
            Self::Prompt => KEEP_ALIVE,
            Self::Patient => PATIENT_KEEP_ALIVE,
        }
    }

    const fn idle(self) -> Duration {
        match self {
            Self::Prompt => IDLE_TIMEOUT,
            Self::Patient => PATIENT_IDLE_TIMEOUT,
        }
    }
}

fn common(idle: Duration) -> TransportConfig {
    let mut t = TransportConfig::default();
    let idle = u32::try_from(idle.as_millis()).unwrap_or(u32::MAX);
    t.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(idle))))
        .initial_rtt(INITIAL_RTT)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(SESSION_WINDOW))
        .send_window(u64::from(SESSION_WINDOW))
        // With it each session keeps room for ten datagrams, 16 KiB, for ever. Calls and answers
        // fit into one.
        .enable_segmentation_offload(false)
        .datagram_receive_buffer_size(None);
    t
}

pub(crate) fn client(
    tls: rustls::ClientConfig,
    keepalive: Keepalive,
) -> Result<quinn::ClientConfig, String> {
    let crypto =
        quinn::crypto::rustls::QuicClientConfig::try_from(tls).map_err(|e| e.to_string())?;
    let mut transport = common(keepalive.idle());
    if keepalive == Keepalive::Patient {
        // A ping is acknowledged at once: the server wakes once for it, not again 25 ms later.
        let mut acks = AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(0));
        transport.ack_frequency_config(Some(acks));
    }
    // The server opens its hello, and later notices one after the other.
    transport
        .keep_alive_interval(Some(keepalive.ping()))
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(2));
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

pub(crate) fn server(tls: rustls::ServerConfig) -> Result<quinn::ServerConfig, String> {
    let crypto =
        quinn::crypto::rustls::QuicServerConfig::try_from(tls).map_err(|e| e.to_string())?;
    // What the client says is shorter, and counts (RFC 9000 §10.1).
    let mut transport = common(PATIENT_IDLE_TIMEOUT);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_AT_FIRST))
        .max_concurrent_uni_streams(VarInt::from_u32(0));
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config.max_incoming(INCOMING_MAX);
    Ok(config)
}

/// Length of the ids that name a session in packets, bytes.
const ID_LEN: usize = 8;

/// Random ids. quinn's own carry a check that only the process that made them can pass, so that
/// after a restart packets of old sessions would be dropped instead of answered with a reset.
#[derive(Debug)]
struct SessionIds;

impl ConnectionIdGenerator for SessionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&rand::rng().random::<[u8; ID_LEN]>())
    }

    fn cid_len(&self) -> usize {
        ID_LEN
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Settings of a server's socket.
pub(crate) fn endpoint(reset_key: &[u8; 32]) -> EndpointConfig {
    let key = hmac::Key::new(hmac::HMAC_SHA256, reset_key);
    let mut config = EndpointConfig::new(Arc::new(key));
    config.cid_generator(|| Box::new(SessionIds));
    config
}
