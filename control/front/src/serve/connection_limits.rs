//! Bounds and timeouts of connections.

use std::time::Duration;

/// Bounds on connections, and timeouts of those without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Most open connections.
    pub all: usize,
    /// Most open connections that have not carried a call with a valid token.
    pub strangers: usize,
    /// The same bound for one IPv4 address or one IPv6 /64.
    pub strangers_of_one_network: usize,
    /// Most open connections of one token.
    pub of_one_token: usize,
    /// Time limit for the first byte, and again from it to the end of the TLS handshake.
    pub first_byte: Duration,
    /// Time limit for the head of the first request, after the TLS handshake.
    pub first_request: Duration,
    /// Longest time without a call on a connection without a token.
    pub stranger_idle: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: 4096,
            strangers: 1024,
            strangers_of_one_network: 256,
            of_one_token: 256,
            first_byte: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            stranger_idle: Duration::from_secs(30),
        }
    }
}
