//! One attempt to open a session.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint};
use tokio::time::timeout;

use crate::close::{CloseReason, busy_wait};
use crate::frame;
use crate::limits::DIAL_TIME_MAX;
use crate::open::OpenSession;
use crate::runtime::{Tasks, WriteCount};
use crate::socket;

/// The reason why no session was opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The node did not answer.
    #[error("{address} does not answer: {reason}")]
    Unreachable {
        /// The dialled address.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The node's certificate was not issued by a pinned root, or it has expired.
    #[error(
        "{address} is not a control node that is trusted here: {reason}; if the certificate \
         authority was replaced while this agent was away, let it join again: metalmesh join \
         create, then start it with --ticket-file"
    )]
    Untrusted {
        /// The dialled address.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The node refuses new handshakes: too many are in progress.
    #[error("{address} refuses new handshakes: too many are in progress")]
    Crowded {
        /// The dialled address.
        address: String,
    },
    /// The node accepts no session now.
    #[error("{address} is busy; retry in {} ms", retry_in.as_millis())]
    Busy {
        /// The dialled address.
        address: String,
        /// Wait before the next attempt, as the node told.
        retry_in: Duration,
    },
    /// The node refused our certificate: it has expired or was issued by another authority.
    #[error("{address} refuses our certificate: {reason}")]
    Refused {
        /// The dialled address.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The identity is revoked.
    #[error("{address} reports that our identity is revoked")]
    Revoked {
        /// The dialled address.
        address: String,
    },
}

/// QUIC's transport error of a server that refuses the handshake (RFC 9000 §20.1).
const CONNECTION_REFUSED: u64 = 0x2;
/// TLS alerts (RFC 8446 §6.2) travel in QUIC as 0x100 + alert.
const CRYPTO_ERROR: u64 = 0x100;

/// An IPv4 socket that many sessions of one process share, as in a simulation of a fleet. Unlike a
/// client's own socket it is not bound anew after failed attempts.
#[derive(Clone, Debug)]
pub struct Socket {
    endpoint: Endpoint,
}

impl Socket {
    /// Binds it to any port; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system's error if the socket cannot be bound.
    pub fn bind() -> std::io::Result<Self> {
        let socket = socket::bind_shared((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let endpoint = endpoint(socket)?;
        Ok(Self { endpoint })
    }
}

fn endpoint(socket: UdpSocket) -> std::io::Result<Endpoint> {
    let config = quinn::EndpointConfig::default();
    Endpoint::new(config, None, socket, Arc::new(Tasks))
}

/// Sockets for outgoing sessions, one per address family, bound on first use.
#[derive(Debug, Default)]
pub(crate) struct Dialer {
    shared: Option<Socket>,
    v4: Option<Endpoint>,
    v6: Option<Endpoint>,
}

impl Dialer {
    /// Dials from the shared socket. `None` means from sockets of its own.
    pub(crate) fn on(shared: Option<Socket>) -> Self {
        Self {
            shared,
            ..Self::default()
        }
    }

    /// Tries each socket address behind `address` until one answers with a hello.
    pub(crate) async fn dial(
        &mut self,
        address: &str,
        config: &quinn::ClientConfig,
    ) -> Result<OpenSession, DialError> {
        let unreachable = |reason: String| DialError::Unreachable {
            address: address.to_owned(),
            reason,
        };
        let targets: Vec<SocketAddr> = match address.parse() {
            Ok(one) => vec![one],
            Err(_) => timeout(DIAL_TIME_MAX, tokio::net::lookup_host(address))
                .await
                .map_err(|_| unreachable("name not resolved in time".to_owned()))?
                .map_err(|e| unreachable(e.to_string()))?
                .collect(),
        };
        let mut last = unreachable("name has no address".to_owned());
        // A name may have an IPv6 address although this host has no IPv6 route; a later address may
        // still answer.
        for target in targets {
            match self.dial_one(target, address, config).await {
                Ok(session) => return Ok(session),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    async fn dial_one(
        &mut self,
        target: SocketAddr,
        address: &str,
        config: &quinn::ClientConfig,
    ) -> Result<OpenSession, DialError> {
        let unreachable = |reason: String| DialError::Unreachable {
            address: address.to_owned(),
            reason,
        };
        let endpoint = self
            .endpoint(target)
            .map_err(|e| unreachable(e.to_string()))?;
        let open = async {
            let connect = || endpoint.connect_with(config.clone(), target, "metalmesh");
            let (connecting, writes) = WriteCount::of(connect);
            let connecting = connecting.map_err(|e| unreachable(e.to_string()))?;
            let connection = connecting.await.map_err(|e| classify(address, &e))?;
            // In TLS 1.3 the client's handshake completes before the server has judged the client's
            // certificate. Only the hello proves that the server accepted it; without this wait a
            // refused agent would report a session and lose it at its first call.
            let keeps = hear_hello(&connection)
                .await
                .map_err(|e| classify(address, &e))?;
            Ok(OpenSession::new(connection, writes, keeps))
        };
        // The limit includes the hello: a node that hangs after the handshake must not hold the
        // client back from the next address.
        timeout(DIAL_TIME_MAX, open)
            .await
            .map_err(|_| unreachable("no answer in time".to_owned()))?
    }

    fn endpoint(&mut self, target: SocketAddr) -> std::io::Result<Endpoint> {
        if let Some(shared) = self.shared.as_ref().filter(|_| target.is_ipv4()) {
            return Ok(shared.endpoint.clone());
        }
        let (slot, any): (_, SocketAddr) = if target.is_ipv4() {
            (&mut self.v4, (Ipv4Addr::UNSPECIFIED, 0).into())
        } else {
            (&mut self.v6, (Ipv6Addr::UNSPECIFIED, 0).into())
        };
        if let Some(endpoint) = slot {
            return Ok(endpoint.clone());
        }
        let endpoint = endpoint(UdpSocket::bind(any)?)?;
        Ok(slot.insert(endpoint).clone())
    }

    /// Drops the sockets, so that the next dial uses new interfaces and addresses.
    pub(crate) fn reset(&mut self) {
        self.v4 = None;
        self.v6 = None;
    }
}

/// Waits for the server's hello. `true` if the server permits several calls on one stream.
async fn hear_hello(connection: &Connection) -> Result<bool, ConnectionError> {
    let mut hello = connection.accept_uni().await?;
    match hello.read_to_end(frame::HELLO_LEN_MAX).await.as_deref() {
        // A server from before stream reuse sends the version alone.
        Ok([frame::VERSION]) => return Ok(false),
        Ok([frame::VERSION, more, ..]) => return Ok(*more & frame::KEEPS_STREAMS != 0),
        _ => {}
    }
    CloseReason::Done.close(connection);
    Err(connection
        .close_reason()
        .unwrap_or(ConnectionError::LocallyClosed))
}

pub(crate) fn classify(address: &str, error: &ConnectionError) -> DialError {
    let (address, reason) = (address.to_owned(), error.to_string());
    match error {
        ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
            c if c == CloseReason::Revoked as u64 => DialError::Revoked { address },
            c if c == CloseReason::Expired as u64 || c == CloseReason::Identity as u64 => {
                DialError::Refused { address, reason }
            }
            c => match busy_wait(c) {
                Some(retry_in) => DialError::Busy { address, retry_in },
                // The other reasons, such as a stop or a change of leader, are about the node. The
                // client moves on to the next address.
                None => DialError::Unreachable { address, reason },
            },
        },
        // A TLS alert from the server: it refused our certificate.
        ConnectionError::ConnectionClosed(close) if is_crypto(u64::from(close.error_code)) => {
            DialError::Refused { address, reason }
        }
        // The server had too many handshakes in progress.
        ConnectionError::ConnectionClosed(close)
            if u64::from(close.error_code) == CONNECTION_REFUSED =>
        {
            DialError::Crowded { address }
        }
        // A TLS alert raised here: the server's certificate was not accepted.
        ConnectionError::TransportError(e) if is_crypto(u64::from(e.code)) => {
            DialError::Untrusted { address, reason }
        }
        _ => DialError::Unreachable { address, reason },
    }
}

fn is_crypto(code: u64) -> bool {
    (CRYPTO_ERROR..CRYPTO_ERROR + 0x100).contains(&code)
}
