//! quinn's settings on both ends.

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

/// How soon a client detects that its node stopped without closing the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keepalive {
    /// After [`IDLE_TIMEOUT`]: for agents that others rely on.
    #[default]
    Prompt,
    /// After [`PATIENT_IDLE_TIMEOUT`]: for machines that wait to be allocated. A node has thousands
    /// of them, and their pings are all that they cost it.
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
        // Bounds the unacknowledged answers in memory for a peer that stops reading.
        .send_window(u64::from(SESSION_WINDOW))
        // Segmentation offload keeps a buffer of ten datagrams (16 KiB) per session for its whole
        // life. Most calls and answers fit into one datagram and gain nothing from it.
        .enable_segmentation_offload(false)
        // No method uses QUIC datagrams. Without a buffer the peer cannot send any.
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
        // The server acknowledges a ping at once. With delayed acknowledgements it would wake a
        // second time 25 ms later, for each ping of thousands of idle sessions.
        let mut acks = AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(0));
        transport.ack_frequency_config(Some(acks));
    }
    // The server opens one stream for its hello, and later one for each notice in turn. It never
    // opens bidirectional streams: calls go from agents to control only.
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
    // Both ends use the smaller of the two idle timeouts (RFC 9000 §10.1), so the client's choice
    // decides as long as this one is the longest.
    let mut transport = common(PATIENT_IDLE_TIMEOUT);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_AT_FIRST))
        .max_concurrent_uni_streams(VarInt::from_u32(0));
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config.max_incoming(INCOMING_MAX);
    Ok(config)
}

/// Length of a QUIC connection id, bytes.
const ID_LEN: usize = 8;

/// Random connection ids. quinn's default ids carry a checksum keyed by the process, so that after
/// a restart it would drop packets of old sessions instead of answering with a stateless reset.
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

/// Settings of a server's endpoint. `reset_key` derives the stateless reset tokens.
pub(crate) fn endpoint(reset_key: &[u8; 32]) -> EndpointConfig {
    let key = hmac::Key::new(hmac::HMAC_SHA256, reset_key);
    let mut config = EndpointConfig::new(Arc::new(key));
    config.cid_generator(|| Box::new(SessionIds));
    config
}
