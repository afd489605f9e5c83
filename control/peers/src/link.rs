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
use parking_lot::{Mutex, RwLock};
use proto_identity::{IdentityError, members};
use quinn::{Connection, ConnectionError, Endpoint};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ALPN;
use crate::close_code::REMOVED;
use crate::connection_key::{ConnectionKey, broken};
use crate::settings::{self, DIAL_TIME_MAX};

/// Server name (SNI) of the handshake. It has no meaning: the certificate proves the node.
const SERVER_NAME: &str = "peer";

/// This node's link to the other control nodes. Cheap to clone.
///
/// Without a credential it reaches no node and accepts none: see [`PeerLink::set_credential`].
#[derive(Clone)]
pub struct PeerLink(pub(crate) Arc<PeerLinkInner>);

/// The state shared by all handles of a link.
pub(crate) struct PeerLinkInner {
    pub(crate) endpoint: Endpoint,
    credential: RwLock<Option<PeerCredential>>,
    /// Connections by what they are for, open or being opened.
    connections: Mutex<BTreeMap<ConnectionKey, Dial>>,
    /// Tasks that dial. A dial goes on when the caller that asked first has given up, because the
    /// next one needs the same connection.
    dials: Mutex<JoinSet<()>>,
    /// Nodes whose last dial failed.
    missed: Mutex<BTreeSet<u64>>,
    /// Cancelled when another node says that this one was removed.
    removed: CancellationToken,
}

/// A connection, or one that is being opened.
type Dial = Shared<BoxFuture<'static, Result<Connection, Arc<io::Error>>>>;

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
            .ok_or_else(|| io::Error::other("there is no async runtime"))?;
        let endpoint = Endpoint::new(quinn::EndpointConfig::default(), None, socket, runtime)?;
        Ok(Self(Arc::new(PeerLinkInner {
            endpoint,
            credential: RwLock::new(None),
            connections: Mutex::default(),
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

    /// Uses this certificate from now on. Open channels stay; new ones use new connections.
    ///
    /// # Errors
    /// When key and certificate do not fit together.
    pub fn set_credential(&self, credential: PeerCredential) -> Result<(), IdentityError> {
        let tls = members::server_config(&credential.anchors, &credential.own, ALPN)?;
        let server = settings::server(tls).map_err(IdentityError::Tls)?;
        self.0.endpoint.set_server_config(Some(server));
        // The lock is held over both steps: a dial in between would enter a connection with the old
        // certificate into the cleared map.
        let mut current = self.0.credential.write();
        *current = Some(credential);
        self.0.connections.lock().clear();
        Ok(())
    }
}

impl Transport for PeerLink {
    fn open(&self, member: &ClusterMember, lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let inner = self.0.clone();
        let key = ConnectionKey {
            node: member.node,
            address: member.address.clone(),
            is_bulk: lane == Lane::Snapshot,
        };
        Box::pin(async move {
            let connection = inner.connection(&key).await;
            let connection = connection.map_err(|e| io::Error::new(e.kind(), e))?;
            let (send, receive) = connection.open_bi().await.map_err(|e| broken(&key, e))?;
            Ok(Channel::over(receive, send))
        })
    }
}

impl PeerLinkInner {
    /// The connection that is open or being opened, or a new one. Callers that ask at the same time
    /// share one dial: a node that restarts would otherwise get one handshake per lane and request.
    fn connection(self: &Arc<Self>, key: &ConnectionKey) -> Dial {
        let mut connections = self.connections.lock();
        if let Some(dial) = connections.get(key) {
            match dial.peek() {
                None => return dial.clone(),
                Some(Ok(open)) => match open.close_reason() {
                    None => return dial.clone(),
                    Some(reason) => self.note_removal(&reason),
                },
                Some(Err(_)) => {}
            }
        }
        let (inner, to) = (self.clone(), key.clone());
        let dial = async move {
            let dialed = timeout(DIAL_TIME_MAX, inner.dial(&to)).await;
            let dialed = dialed.unwrap_or_else(|_| {
                let ConnectionKey { node, address, .. } = &to;
                let message = format!("node {node} does not answer at {address}");
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            });
            inner.note_reachability(&to, &dialed);
            dialed.map_err(Arc::new)
        };
        let dial = dial.boxed().shared();
        connections.insert(key.clone(), dial.clone());
        drop(connections);
        let mut dials = self.dials.lock();
        while dials.try_join_next().is_some() {}
        dials.spawn(dial.clone().map(drop));
        dial
    }

    /// Logs once that a node is out of reach, and once that it is back.
    fn note_reachability(&self, key: &ConnectionKey, dialed: &io::Result<Connection>) {
        let mut missed = self.missed.lock();
        match dialed {
            Ok(_) => {
                if missed.remove(&key.node) {
                    tracing::info!(node = key.node, "a control node is in reach again");
                }
            }
            Err(error) => {
                if missed.insert(key.node) {
                    tracing::warn!(node = key.node, error = %error, "a control node is out of reach");
                }
            }
        }
    }

    /// Notes that another node closed a connection because this node was removed.
    fn note_removal(&self, reason: &ConnectionError) {
        // The removal itself is a log entry that a removed node never gets. Without this code it
        // would dial the others for ever.
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

    /// Opens a connection and checks that the expected node answers.
    async fn dial(&self, key: &ConnectionKey) -> io::Result<Connection> {
        let ConnectionKey { node, address, .. } = key;
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
        // Looked up at each dial: a node may come back under another address of the same name.
        let found = tokio::net::lookup_host(address).await;
        let at = found.map_err(|e| unknown(e.to_string()))?.next();
        let at = at.ok_or_else(|| unknown("no address has this name".to_owned()))?;
        let connecting = self.endpoint.connect_with(config, at, SERVER_NAME);
        let connecting = connecting.map_err(|e| unknown(e.to_string()))?;
        connecting.await.map_err(|e| broken(key, e))
    }
}
