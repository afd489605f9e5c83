//! The settings of a client, and the state of its session.

use crate::dial::DialError;
use crate::transport::Keepalive;

/// Settings of a client.
#[derive(Debug)]
pub struct MeshClientConfig {
    /// Addresses of control nodes, host:port, dialled in turn.
    pub addresses: Vec<String>,
    /// From [`proto_identity::tls::client_config`] with [`crate::ALPN`].
    pub tls: rustls::ClientConfig,
    /// How soon the client detects a dead node.
    pub keepalive: Keepalive,
}

impl MeshClientConfig {
    /// Settings with the prompt keepalive.
    pub fn new(addresses: Vec<String>, tls: rustls::ClientConfig) -> Self {
        Self {
            addresses,
            tls,
            keepalive: Keepalive::default(),
        }
    }
}

/// The state of a client's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The session is open.
    Up,
    /// There is no session, with the last reason. `None` before the first attempt has failed.
    Down(Option<DialError>),
    /// The client was closed.
    Closed,
}
