//! The calling side, and the socket that both sides share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use control_pki::PeerCredential;
use control_store::{Channel, ClusterMember, Lane, Transport};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::{Mutex, MutexGuard, RwLock};
use proto_identity::{IdentityError, members};
use quinn::{Connection, ConnectionError, Endpoint};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ALPN;
use crate::inbound::REMOVED;
use crate::settings::{self, DIAL_TIME_MAX};

/// The name in the handshake; who answers is judged by its certificate.
const SERVER_NAME: &str = "peer";

/// This node's link to the other control nodes. Cheap to clone.
///
/// Without a credential nobody is reached and nobody is let in: see
/// [`PeerLink::set_credential`].
#[derive(Clone)]
pub struct PeerLink(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) endpoint: Endpoint,
    credential: RwLock<Option<PeerCredential>>,
    ways: Mutex<BTreeMap<Way, Dial>>,
    /// Dials go on when whoever asked first has given up: the next one wants the connection too.
    dials: Mutex<JoinSet<()>>,
    /// Nodes that could not be reached the last time.
    missed: Mutex<BTreeSet<u64>>,
    removed: CancellationToken,
}

/// A connection, or one that is being opened.
type Dial = Shared<BoxFuture<'static, Result<Connection, Arc<io::Error>>>>;

/// Whom a connection leads to, and for what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    node: u64,
    address: String,
    is_bulk: bool,
}

impl fmt::Debug for PeerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerLink")
            .field("local_addr", &self.0.endpoint.local_addr().ok())
            .finish_non_exhaustive()
    }
}

impl PeerLink {
    /// Binds the socket; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        let runtime = quinn::default_runtime()
            .ok_or_else(|| io::Error::other("no async runtime is there"))?;
        let endpoint = Endpoint::new(quinn::EndpointConfig::default(), None, socket, runtime)?;
        Ok(Self(Arc::new(Inner {
            endpoint,
            credential: RwLock::new(None),
            ways: Mutex::default(),
            dials: Mutex::default(),
            missed: Mutex::default(),
            removed: CancellationToken::new(),
        })))
    }

    /// The bound address.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.endpoint.local_addr()
    }

    /// Cancelled once another node says that this one was removed from the cluster.
    pub fn removed(&self) -> CancellationToken {
        self.0.removed.clone()
    }

    /// Shows this certificate from now on. Open channels go on; new ones use new connections.
    ///
    /// # Errors
    /// When key and certificate do not fit together.
    pub fn set_credential(&self, credential: PeerCredential) -> Result<(), IdentityError> {
        let tls = members::server_config(&credential.anchors, &credential.own, ALPN)?;
        let server = settings::server(tls).map_err(IdentityError::Tls)?;
        self.0.endpoint.set_server_config(Some(server));
        let mut current = self.0.credential.write();
        *current = Some(credential);
        self.0.ways().clear();
        Ok(())
    }
}

impl Transport for PeerLink {
    fn open(&self, member: &ClusterMember, lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let inner = self.0.clone();
        let way = Way {
            node: member.node,
            address: member.address.clone(),
            is_bulk: lane == Lane::Snapshot,
        };
        Box::pin(async move {
            let connection = inner.connection(&way).await;
            let connection = connection.map_err(|e| io::Error::new(e.kind(), e))?;
            let (send, receive) = connection.open_bi().await.map_err(|e| broken(&way, e))?;
            Ok(Channel::over(receive, send))
        })
    }
}

impl Inner {
    fn ways(&self) -> MutexGuard<'_, BTreeMap<Way, Dial>> {
        self.ways.lock()
    }

    /// The connection that is open or being opened, or a new one.
    fn connection(self: &Arc<Self>, way: &Way) -> Dial {
        let mut ways = self.ways();
        if let Some(dial) = ways.get(way) {
            match dial.peek() {
                None => return dial.clone(),
                Some(Ok(open)) => match open.close_reason() {
                    None => return dial.clone(),
                    Some(reason) => self.note_removal(&reason),
                },
                Some(Err(_)) => {}
            }
        }
        let (inner, to) = (self.clone(), way.clone());
        let dial = async move {
            let dialed = timeout(DIAL_TIME_MAX, inner.dial(&to)).await;
            let dialed = dialed.unwrap_or_else(|_| {
                let Way { node, address, .. } = &to;
                let message = format!("node {node} does not answer at {address}");
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            });
            inner.note(&to, &dialed);
            dialed.map_err(Arc::new)
        };
        let dial = dial.boxed().shared();
        ways.insert(way.clone(), dial.clone());
        drop(ways);
        let mut dials = self.dials.lock();
        while dials.try_join_next().is_some() {}
        dials.spawn(dial.clone().map(drop));
        dial
    }

    /// Says once that a node is out of reach, and once that it is back.
    fn note(&self, way: &Way, dialed: &io::Result<Connection>) {
        let mut missed = self.missed.lock();
        match dialed {
            Ok(_) => {
                if missed.remove(&way.node) {
                    tracing::info!(node = way.node, "a control node is in reach again");
                }
            }
            Err(error) => {
                if missed.insert(way.node) {
                    tracing::warn!(node = way.node, error = %error, "a control node is out of reach");
                }
            }
        }
    }

    /// A node that was removed cannot know otherwise why nobody talks to it.
    fn note_removal(&self, reason: &ConnectionError) {
        if let ConnectionError::ApplicationClosed(close) = reason
            && close.error_code.into_inner() == u64::from(REMOVED)
            && !self.removed.is_cancelled()
        {
            let reason = String::from_utf8_lossy(&close.reason);
            tracing::error!(
                reason = %reason,
                "the others refuse this node; empty its data directory and join it anew"
            );
            self.removed.cancel();
        }
    }

    async fn dial(&self, way: &Way) -> io::Result<Connection> {
        let Way { node, address, .. } = way;
        let tls = {
            let credential = self.credential.read();
            let credential = credential.as_ref().ok_or_else(|| {
                let message = "this node has no certificate for its peers yet";
                io::Error::new(io::ErrorKind::NotConnected, message)
            })?;
            members::client_config(&credential.anchors, &credential.own, *node, ALPN)
        };
        let config = settings::client(tls.map_err(io::Error::other)?).map_err(io::Error::other)?;
        let unknown = |reason: String| {
            let message = format!("the peer address {address} of node {node}: {reason}");
            io::Error::new(io::ErrorKind::NotFound, message)
        };
        let found = tokio::net::lookup_host(address).await;
        let at = found.map_err(|e| unknown(e.to_string()))?.next();
        let at = at.ok_or_else(|| unknown("names nothing".to_owned()))?;
        let connecting = self.endpoint.connect_with(config, at, SERVER_NAME);
        let connecting = connecting.map_err(|e| unknown(e.to_string()))?;
        connecting.await.map_err(|e| broken(way, e))
    }
}

/// What a broken connection means to an operator.
fn broken(way: &Way, error: ConnectionError) -> io::Error {
    let Way { node, address, .. } = way;
    let (kind, message) = match &error {
        // 0x100 and up are alerts of TLS.
        ConnectionError::TransportError(e) if u64::from(e.code) & !0xff == 0x100 => (
            io::ErrorKind::PermissionDenied,
            format!(
                "whoever answers at {address} is not node {node} of this cluster, or does not \
                 take this node for one: {}. Compare the peer addresses: metalmesh cluster status",
                e.reason
            ),
        ),
        ConnectionError::ApplicationClosed(close) => (
            io::ErrorKind::ConnectionRefused,
            format!(
                "node {node} at {address} ended the connection: {}",
                String::from_utf8_lossy(&close.reason)
            ),
        ),
        ConnectionError::ConnectionClosed(close) => (
            io::ErrorKind::ConnectionRefused,
            format!("node {node} at {address} refused: {close}"),
        ),
        other => (
            io::ErrorKind::NotConnected,
            format!("node {node} at {address}: {other}"),
        ),
    };
    io::Error::new(kind, message)
}
