//! The mesh endpoint of a control node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use proto_bounds::Places;
use quinn::Endpoint;
use rand::Rng as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::accept::ServerShared;
use crate::admission::{Admission, AdmissionRate};
use crate::call_counts::CallCounts;
use crate::close::CloseReason;
use crate::handshake_counts::HandshakeCounts;
use crate::limits::{
    ADMISSIONS_AT_ONCE, ADMISSIONS_PER_SECOND, ANONYMOUS_SESSIONS_MAX,
    ANONYMOUS_SESSIONS_PER_ADDRESS_MAX, STOP_TIME_MAX,
};
use crate::presence::Presence;
use crate::revocations::Revocations;
use crate::router::Router;
use crate::runtime::Tasks;
use crate::session::Services;
use crate::socket;
use crate::transport;
use crate::turned_away::RevokedAttempts;

/// Settings of a server.
pub struct MeshServerConfig {
    /// UDP address to listen on.
    pub bind: SocketAddr,
    /// From [`proto_identity::tls::server_config`] with [`crate::ALPN`].
    pub tls: rustls::ServerConfig,
    /// Only identities of this trust domain are accepted.
    pub trust_domain: String,
    /// The services.
    pub router: Router,
    /// The revocation list.
    pub revocations: Arc<dyn Revocations>,
}

impl std::fmt::Debug for MeshServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MeshServerConfig")
            .field("bind", &self.bind)
            .field("trust_domain", &self.trust_domain)
            .field("router", &self.router)
            .finish_non_exhaustive()
    }
}

/// A bound endpoint; serves while [`MeshServer::run`] runs.
#[derive(Debug)]
pub struct MeshServer {
    endpoint: Endpoint,
    shared: Arc<ServerShared>,
}

/// Replaces the TLS configuration of a running server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsSetter(Endpoint);

impl TlsSetter {
    /// See [`MeshServer::trust`].
    ///
    /// # Errors
    /// If the configuration has no cipher suite that QUIC can use.
    pub fn set(&self, tls: rustls::ServerConfig) -> io::Result<()> {
        let tls = transport::server(tls).map_err(io::Error::other)?;
        self.0.set_server_config(Some(tls));
        Ok(())
    }
}

impl MeshServer {
    /// Binds the socket, with a random reset key.
    pub fn bind(config: MeshServerConfig) -> io::Result<Self> {
        let mut key = [0u8; 32];
        rand::rng().fill(&mut key);
        Self::bind_with_reset_key(config, &key)
    }

    /// Binds the socket. `reset_key` is a secret of this node that outlives the process: after a
    /// crash the node answers packets of its old sessions with a stateless reset (RFC 9000 §10.3)
    /// instead of leaving them to their idle timeout.
    pub fn bind_with_reset_key(config: MeshServerConfig, reset_key: &[u8; 32]) -> io::Result<Self> {
        let tls = transport::server(config.tls).map_err(io::Error::other)?;
        let socket = socket::bind_shared(config.bind)?;
        let settings = transport::endpoint(reset_key);
        let endpoint = Endpoint::new(settings, Some(tls), socket, Arc::new(Tasks))?;
        let shared = Arc::new(ServerShared {
            trust_domain: config.trust_domain,
            services: Arc::new(Services {
                counts: CallCounts::of(config.router.methods()),
                router: config.router,
            }),
            handshake_counts: HandshakeCounts::default(),
            revoked_attempts: RevokedAttempts::default(),
            revocations: config.revocations,
            open_handshakes: Arc::default(),
            gate: None,
            admission: Admission::new(AdmissionRate {
                per_second: ADMISSIONS_PER_SECOND,
                at_once: ADMISSIONS_AT_ONCE,
            }),
            strangers: Places::new(ANONYMOUS_SESSIONS_MAX, ANONYMOUS_SESSIONS_PER_ADDRESS_MAX),
            sessions: Mutex::default(),
        });
        Ok(Self { endpoint, shared })
    }

    /// Serves sessions with a certificate only while `gate` is `true`; at other times their clients
    /// are sent to another node. Callers without a certificate are always served.
    ///
    /// # Errors
    /// If a handle of the server exists already.
    pub fn with_gate(mut self, gate: watch::Receiver<bool>) -> io::Result<Self> {
        let shared = Arc::get_mut(&mut self.shared);
        let shared = shared.ok_or_else(|| io::Error::other("the server runs already"))?;
        shared.gate = Some(gate);
        Ok(self)
    }

    /// Admits sessions with a certificate at another rate than
    /// [`ADMISSIONS_PER_SECOND`](crate::limits::ADMISSIONS_PER_SECOND).
    ///
    /// # Errors
    /// If a handle of the server exists already.
    pub fn with_admission(mut self, rate: AdmissionRate) -> io::Result<Self> {
        let shared = Arc::get_mut(&mut self.shared);
        let shared = shared.ok_or_else(|| io::Error::other("the server runs already"))?;
        shared.admission = Admission::new(rate);
        Ok(self)
    }

    /// A handle on the open sessions and counters. It stays valid after the server stopped.
    pub fn presence(&self) -> Presence {
        Presence(self.shared.clone())
    }

    /// A handle that replaces roots and certificate for later handshakes. Open sessions stay.
    pub fn trust(&self) -> TlsSetter {
        TlsSetter(self.endpoint.clone())
    }

    /// The bound address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Serves until `stop`, then closes every session and waits at most [`STOP_TIME_MAX`] for the
    /// closes to be sent.
    pub async fn run(self, stop: CancellationToken) {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                incoming = self.endpoint.accept() => match incoming {
                    Some(incoming) => {
                        if let Some((incoming, place)) = self.shared.gate(incoming) {
                            let shared = self.shared.clone();
                            sessions.spawn(async move { shared.handle(incoming, place).await });
                        }
                    }
                    None => break,
                },
                // A panic in a session's task ends that session only, not the node.
                Some(done) = sessions.join_next() => if let Err(e) = done {
                    warn!(error = %e, "session ended by a panic");
                },
            }
        }
        // Closed before the session tasks are aborted: clients then learn the reason and dial the
        // next node at once. An aborted task closes its connection without one.
        let code = quinn::VarInt::from_u32(CloseReason::Stopping as u32);
        self.endpoint.close(code, b"control stops");
        drop(timeout(STOP_TIME_MAX, self.endpoint.wait_idle()).await);
        sessions.shutdown().await;
    }
}
