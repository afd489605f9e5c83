//! One attempt to open a session.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint};
use tokio::time::timeout;

use crate::frame;
use crate::limits::DIAL_TIME_MAX;
use crate::open::OpenSession;
use crate::runtime::{Tasks, Turns};
use crate::session::{Close, sent_away};
use crate::socket;

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// Nobody answered.
    #[error("{address} does not answer: {reason}")]
    Unreachable {
        /// Where was tried.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The node's certificate is not one of the pinned roots' or has ended.
    #[error(
        "{address} is not a control node that is trusted here: {reason}; when the certificate \
         authority was replaced while this one was away, let it join anew: metalmesh join create, \
         then start it with --ticket-file"
    )]
    Untrusted {
        /// Where was tried.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The node begins no handshake now: too many are in progress.
    #[error("{address} is crowded and begins no handshake now")]
    Crowded {
        /// Where was tried.
        address: String,
    },
    /// The node has no place for us now.
    #[error("{address} is busy and wants us back in {} ms", retry_in.as_millis())]
    Busy {
        /// Where was tried.
        address: String,
        /// After how long to try again.
        retry_in: Duration,
    },
    /// The node refused our certificate: it has ended or comes from elsewhere.
    #[error("{address} refuses our certificate: {reason}")]
    Refused {
        /// Where was tried.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The identity is revoked.
    #[error("our identity is revoked, says {address}")]
    Revoked {
        /// Where was tried.
        address: String,
    },
}

/// A QUIC node that does not begin a handshake (RFC 9000 §20.1).
const CONNECTION_REFUSED: u64 = 0x2;
/// TLS alerts (RFC 8446 §6.2) travel in QUIC as 0x100 + alert.
const CRYPTO_ERROR: u64 = 0x100;

/// A socket that many sessions of one process share, as in a simulation of a fleet. It is IPv4's
/// and stays when an interface or address changes.
#[derive(Clone, Debug)]
pub struct Socket {
    endpoint: Endpoint,
}

impl Socket {
    /// Binds it to any port; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// What the system says.
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

/// Sockets for outgoing sessions, one per address family, made when needed.
#[derive(Debug, Default)]
pub(crate) struct Dialer {
    shared: Option<Socket>,
    v4: Option<Endpoint>,
    v6: Option<Endpoint>,
}

impl Dialer {
    /// Dials from a socket that others use as well, or from its own.
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
            let (connecting, turns) = Turns::of(connect);
            let connecting = connecting.map_err(|e| unreachable(e.to_string()))?;
            let connection = connecting.await.map_err(|e| classify(address, &e))?;
            let keeps = hear_hello(&connection)
                .await
                .map_err(|e| classify(address, &e))?;
            Ok(OpenSession::new(connection, turns, keeps))
        };
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

    /// Forgets the sockets, so that a new interface or address is picked up by the next dial.
    pub(crate) fn reset(&mut self) {
        self.v4 = None;
        self.v6 = None;
    }
}

/// Whether the server lets calls follow each other on one stream.
async fn hear_hello(connection: &Connection) -> Result<bool, ConnectionError> {
    let mut hello = connection.accept_uni().await?;
    match hello.read_to_end(frame::HELLO_LEN_MAX).await.as_deref() {
        Ok([frame::VERSION]) => return Ok(false),
        Ok([frame::VERSION, more, ..]) => return Ok(*more & frame::KEEPS_STREAMS != 0),
        _ => {}
    }
    Close::Done.close(connection);
    Err(connection
        .close_reason()
        .unwrap_or(ConnectionError::LocallyClosed))
}

pub(crate) fn classify(address: &str, error: &ConnectionError) -> DialError {
    let (address, reason) = (address.to_owned(), error.to_string());
    match error {
        ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
            c if c == Close::Revoked as u64 => DialError::Revoked { address },
            c if c == Close::Expired as u64 || c == Close::Identity as u64 => {
                DialError::Refused { address, reason }
            }
            c => match sent_away(c) {
                Some(retry_in) => DialError::Busy { address, retry_in },
                None => DialError::Unreachable { address, reason },
            },
        },
        // The other side closed because of our certificate.
        ConnectionError::ConnectionClosed(close) if is_crypto(u64::from(close.error_code)) => {
            DialError::Refused { address, reason }
        }
        // It did not even begin a handshake.
        ConnectionError::ConnectionClosed(close)
            if u64::from(close.error_code) == CONNECTION_REFUSED =>
        {
            DialError::Crowded { address }
        }
        // We closed because of theirs.
        ConnectionError::TransportError(e) if is_crypto(u64::from(e.code)) => {
            DialError::Untrusted { address, reason }
        }
        _ => DialError::Unreachable { address, reason },
    }
}

fn is_crypto(code: u64) -> bool {
    (CRYPTO_ERROR..CRYPTO_ERROR + 0x100).contains(&code)
}
