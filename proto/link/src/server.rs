//! The mesh endpoint of a control node.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proto_bounds::{Place as Counted, Places, network};
use proto_identity::{CallerKind, CertificateDer, PeerIdentity, SpiffeId};
use quinn::{Connection, Endpoint, Incoming};
use rand::Rng as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::admission::{Admission, AdmissionRate, Handshaking, Place};
use crate::limits::{
    ADMISSIONS_AT_ONCE, ADMISSIONS_PER_SECOND, ANONYMOUS_BUSY, ANONYMOUS_SESSIONS_MAX,
    ANONYMOUS_SESSIONS_PER_ADDRESS_MAX, BUSY_MAX, HANDSHAKE_TIME_MAX, SESSIONS_MAX,
    SESSIONS_PER_PEER_MAX, STOP_TIME_MAX,
};
use crate::revocations::Revocations;
use crate::router::Router;
use crate::runtime::{Tasks, Turns};
use crate::session::{self, Close, Peer, Services};
use crate::socket;
use crate::stats::{Calls, Doorkeeper, Handshake, Handshakes, LinkStats, TurnedAway};
use crate::transport;

/// What a server needs.
pub struct MeshServerConfig {
    /// UDP address.
    pub bind: SocketAddr,
    /// From [`proto_identity::tls::server_config`] with [`crate::ALPN`].
    pub tls: rustls::ServerConfig,
    /// Only identities of this trust domain are let in.
    pub trust_domain: String,
    /// The services.
    pub router: Router,
    /// Who is revoked.
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
    shared: Arc<Shared>,
}

/// Who has a session at this server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Presence(Arc<Shared>);

impl Presence {
    /// Whether this identity has an open session.
    pub fn is_here(&self, id: &SpiffeId) -> bool {
        let sessions = self.0.sessions.lock();
        sessions.open.contains_key(&Some(id.clone()))
    }

    /// Revoked identities whose bearers tried to come in.
    pub fn turned_away(&self) -> Vec<TurnedAway> {
        self.0.door.list()
    }

    /// What the server counted, and who is there. Looks at each identity that has a session.
    pub fn stats(&self) -> LinkStats {
        let shared = &self.0;
        let mut by_kind = BTreeMap::new();
        let sessions = shared.sessions.lock();
        for (id, open) in &sessions.open {
            let kind = id
                .as_ref()
                .map_or(CallerKind::Anonymous, SpiffeId::caller_kind);
            let open = u64::try_from(open.len()).unwrap_or(u64::MAX);
            *by_kind.entry(kind.as_str()).or_default() += open;
        }
        drop(sessions);
        LinkStats {
            handshakes: shared.shaken.counted(),
            handshakes_open: shared.handshakes.count(),
            sessions: by_kind,
            calls: shared.services.counts.counted(),
        }
    }
}

/// Gives a running server another TLS configuration. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsSetter(Endpoint);

impl TlsSetter {
    /// See [`MeshServer::trust`].
    ///
    /// # Errors
    /// When QUIC cannot be spoken with it.
    pub fn set(&self, tls: rustls::ServerConfig) -> io::Result<()> {
        let tls = transport::server(tls).map_err(io::Error::other)?;
        self.0.set_server_config(Some(tls));
        Ok(())
    }
}

struct Shared {
    trust_domain: String,
    services: Arc<Services>,
    revocations: Arc<dyn Revocations>,
    handshakes: Arc<Handshaking>,
    shaken: Handshakes,
    door: Doorkeeper,
    /// Whether sessions with a certificate are served here now; always without it.
    gate: Option<watch::Receiver<bool>>,
    admission: Admission,
    /// Sessions without a certificate, by the callers' networks.
    strangers: Arc<Places<IpAddr>>,
    sessions: Mutex<Sessions>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("trust_domain", &self.trust_domain)
            .finish_non_exhaustive()
    }
}

/// Open sessions, oldest first; the key `None` is callers without a certificate.
#[derive(Default)]
struct Sessions {
    open: BTreeMap<Option<SpiffeId>, Vec<Connection>>,
    count: usize,
}

impl MeshServer {
    /// Binds the socket, with a reset key of this process.
    pub fn bind(config: MeshServerConfig) -> io::Result<Self> {
        let mut key = [0u8; 32];
        rand::rng().fill(&mut key);
        Self::bind_with_reset_key(config, &key)
    }

    /// Binds the socket. `reset_key` is a secret of this node that outlives the process: after a
    /// crash it lets the node tell its old sessions at once that they are over (RFC 9000 §10.3),
    /// instead of leaving them to their idle timeout.
    pub fn bind_with_reset_key(config: MeshServerConfig, reset_key: &[u8; 32]) -> io::Result<Self> {
        let tls = transport::server(config.tls).map_err(io::Error::other)?;
        let socket = socket::bind_shared(config.bind)?;
        let settings = transport::endpoint(reset_key);
        let endpoint = Endpoint::new(settings, Some(tls), socket, Arc::new(Tasks))?;
        let shared = Arc::new(Shared {
            trust_domain: config.trust_domain,
            services: Arc::new(Services {
                counts: Calls::of(config.router.methods()),
                router: config.router,
            }),
            shaken: Handshakes::default(),
            door: Doorkeeper::default(),
            revocations: config.revocations,
            handshakes: Arc::default(),
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

    /// Serves sessions with a certificate only while `gate` is true; at other times their clients
    /// are sent to another node. Callers without a certificate are served always.
    ///
    /// # Errors
    /// When the server runs already.
    pub fn with_gate(mut self, gate: watch::Receiver<bool>) -> io::Result<Self> {
        let shared = Arc::get_mut(&mut self.shared);
        let shared = shared.ok_or_else(|| io::Error::other("the server runs already"))?;
        shared.gate = Some(gate);
        Ok(self)
    }

    /// Lets sessions with a certificate in at another rate than
    /// [`ADMISSIONS_PER_SECOND`](crate::limits::ADMISSIONS_PER_SECOND).
    ///
    /// # Errors
    /// When the server runs already.
    pub fn with_admission(mut self, rate: AdmissionRate) -> io::Result<Self> {
        let shared = Arc::get_mut(&mut self.shared);
        let shared = shared.ok_or_else(|| io::Error::other("the server runs already"))?;
        shared.admission = Admission::new(rate);
        Ok(self)
    }

    /// A view on who has a session, for as long as anybody wants it.
    pub fn presence(&self) -> Presence {
        Presence(self.shared.clone())
    }

    /// Handshakes from now on are held against these roots and this certificate; sessions that
    /// are open stay.
    pub fn trust(&self) -> TlsSetter {
        TlsSetter(self.endpoint.clone())
    }

    /// The bound address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Serves until `stop`, then tells every session and waits a moment.
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
                Some(done) = sessions.join_next() => if let Err(e) = done {
                    warn!(error = %e, "session ended by a panic");
                },
            }
        }
        let code = quinn::VarInt::from_u32(Close::Stopping as u32);
        self.endpoint.close(code, b"control stops");
        drop(timeout(STOP_TIME_MAX, self.endpoint.wait_idle()).await);
        sessions.shutdown().await;
    }
}

impl Shared {
    /// Takes, asks for proof of address, or refuses; never waits.
    fn gate(&self, incoming: Incoming) -> Option<(Incoming, Place)> {
        let Some(place) = self.handshakes.begin(incoming.remote_address().ip()) else {
            self.shaken.add(Handshake::Busy);
            incoming.refuse();
            return None;
        };
        if place.must_prove && incoming.may_retry() {
            self.shaken.add(Handshake::Retry);
            drop(incoming.retry());
            return None;
        }
        Some((incoming, place))
    }

    async fn handle(&self, incoming: Incoming, place: Place) {
        let remote = incoming.remote_address();
        let (accepted, turns) = Turns::of(|| incoming.accept());
        let shaken = timeout(HANDSHAKE_TIME_MAX, async { accepted?.await }).await;
        drop(place);
        let connection = match shaken {
            Ok(Ok(connection)) => connection,
            Ok(Err(e)) => {
                self.shaken.add(Handshake::Failed);
                info!(%remote, error = %e, "handshake failed");
                return;
            }
            Err(_) => {
                self.shaken.add(Handshake::Late);
                debug!(%remote, "handshake took too long");
                return;
            }
        };
        let Ok(identity) = self.identify(&connection) else {
            self.shaken.add(Handshake::Stranger);
            info!(%remote, "certificate names nobody of ours");
            Close::Identity.close(&connection);
            return;
        };
        let revoked = identity.as_ref().filter(|i| self.revocations.is_revoked(i));
        if let Some(PeerIdentity { id, .. }) = revoked {
            // Before it takes a place, of which there are few in a second.
            self.shaken.add(Handshake::Stranger);
            warn!(agent = %id, "turned away: identity is revoked");
            self.door.note(id, crate::now_ms());
            Close::Revoked.close(&connection);
            return;
        }
        let key = identity.as_ref().map(|i| i.id.clone());
        if key.is_some() && self.gate.as_ref().is_some_and(|gate| !*gate.borrow()) {
            // Before it takes a place: the client goes on to the next address at once.
            Close::Elsewhere.close(&connection);
            return;
        }
        let place = match self.register(key.clone(), &connection) {
            Ok(place) => place,
            Err(wait) => {
                self.shaken.add(Handshake::TooMany);
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                debug!(%remote, wait_ms, "no place for a session now");
                session::send_away(&connection, wait);
                return;
            }
        };
        self.shaken.add(Handshake::Done);
        let peer = Peer::new(identity, remote);
        let services = self.services.clone();
        let revocations = self.revocations.clone();
        let id = connection.stable_id();
        let gate = self.gate.clone().filter(|_| key.is_some());
        session::serve(connection, turns, peer, services, revocations, gate).await;
        self.forget(&key, id);
        drop(place);
    }

    /// The verified chain's leaf names somebody of our trust domain that may be a client.
    fn identify(&self, connection: &Connection) -> Result<Option<PeerIdentity>, ()> {
        let Some(any) = connection.peer_identity() else {
            return Ok(None);
        };
        let chain = any
            .downcast::<Vec<CertificateDer<'static>>>()
            .map_err(drop)?;
        let leaf = chain.first().ok_or(())?;
        let peer = PeerIdentity::from_certificate(leaf).map_err(drop)?;
        if peer.id.trust_domain() == self.trust_domain {
            Ok(Some(peer))
        } else {
            Err(())
        }
    }

    /// Takes a place for a session, or says after how long there may be one. Strangers' places
    /// are counted by their networks, too.
    fn register(
        &self,
        key: Option<SpiffeId>,
        connection: &Connection,
    ) -> Result<Option<Counted<IpAddr>>, Duration> {
        let mut sessions = self.sessions.lock();
        if sessions.count >= SESSIONS_MAX {
            return Err(BUSY_MAX);
        }
        let anonymous = key.is_none();
        let place = if anonymous {
            let place = self
                .strangers
                .take(network(connection.remote_address().ip()));
            Some(place.ok_or(ANONYMOUS_BUSY)?)
        } else {
            self.admission.enter(Instant::now())?;
            None
        };
        let open = sessions.open.entry(key).or_default();
        // An agent that restarts often must not lock itself out: its oldest session goes.
        if !anonymous && open.len() >= SESSIONS_PER_PEER_MAX {
            Close::Replaced.close(&open[0]);
        }
        open.push(connection.clone());
        sessions.count += 1;
        Ok(place)
    }

    fn forget(&self, key: &Option<SpiffeId>, id: usize) {
        let mut sessions = self.sessions.lock();
        let Some(open) = sessions.open.get_mut(key) else {
            return;
        };
        open.retain(|c| c.stable_id() != id);
        if open.is_empty() {
            sessions.open.remove(key);
        }
        sessions.count = sessions.count.saturating_sub(1);
    }
}
