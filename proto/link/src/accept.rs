//! From an incoming packet to a registered session: every check between the two.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proto_bounds::{Place, Places, network};
use proto_identity::{CertificateDer, PeerIdentity, SpiffeId};
use quinn::{Connection, Incoming};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use crate::admission::Admission;
use crate::close::{CloseReason, close_busy};
use crate::handshake_counts::{Handshake, HandshakeCounts};
use crate::handshakes::{HandshakePlace, OpenHandshakes};
use crate::limits::{
    ANONYMOUS_BUSY, BUSY_MAX, HANDSHAKE_TIME_MAX, SESSIONS_MAX, SESSIONS_PER_PEER_MAX,
};
use crate::peer::Peer;
use crate::revocations::Revocations;
use crate::runtime::WriteCount;
use crate::session::{self, Services};
use crate::turned_away::RevokedAttempts;

/// State that the accept loop, the sessions and the handles of a server share.
pub(crate) struct ServerShared {
    pub(crate) trust_domain: String,
    pub(crate) services: Arc<Services>,
    pub(crate) revocations: Arc<dyn Revocations>,
    pub(crate) open_handshakes: Arc<OpenHandshakes>,
    pub(crate) handshake_counts: HandshakeCounts,
    pub(crate) revoked_attempts: RevokedAttempts,
    /// `true` while sessions with a certificate are served here. `None` means always.
    pub(crate) gate: Option<watch::Receiver<bool>>,
    pub(crate) admission: Admission,
    /// Sessions without a certificate, bounded by the callers' networks.
    pub(crate) strangers: Arc<Places<IpAddr>>,
    pub(crate) sessions: Mutex<Sessions>,
}

impl std::fmt::Debug for ServerShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerShared")
            .field("trust_domain", &self.trust_domain)
            .finish_non_exhaustive()
    }
}

/// Open sessions by identity, oldest first. The key `None` is callers without a certificate.
#[derive(Default)]
pub(crate) struct Sessions {
    pub(crate) open: BTreeMap<Option<SpiffeId>, Vec<Connection>>,
    pub(crate) count: usize,
}

impl Sessions {
    /// Adds a session. Beyond [`SESSIONS_PER_PEER_MAX`] it closes the oldest one of the identity.
    fn add(&mut self, key: Option<SpiffeId>, connection: &Connection) {
        let is_bounded = key.is_some();
        let open = self.open.entry(key).or_default();
        // The oldest session is closed, not the new one refused: an agent that crashed leaves
        // sessions behind until their idle timeout and must not lock itself out.
        // A closed session stays in the list until its task ends. It must not be taken for the oldest
        // again, or quick sessions would exceed the bound.
        let mut live = open
            .iter()
            .filter(|session| session.close_reason().is_none());
        if is_bounded
            && live.clone().count() >= SESSIONS_PER_PEER_MAX
            && let Some(oldest) = live.next()
        {
            CloseReason::Replaced.close(oldest);
        }
        open.push(connection.clone());
        self.count += 1;
    }
}

impl ServerShared {
    /// Takes, asks for proof of address, or refuses; never waits.
    pub(crate) fn gate(&self, incoming: Incoming) -> Option<(Incoming, HandshakePlace)> {
        let Some(place) = self.open_handshakes.begin(incoming.remote_address().ip()) else {
            self.handshake_counts.add(Handshake::Busy);
            // Refused, not ignored: a caller without an answer would retransmit its first packet,
            // which costs more than the refusal.
            incoming.refuse();
            return None;
        };
        // A Retry keeps no state (RFC 9000 §8.1.2): the return frees the place, and the caller
        // takes a new one when it comes back with the token.
        if place.must_prove && incoming.may_retry() {
            self.handshake_counts.add(Handshake::Retry);
            drop(incoming.retry());
            return None;
        }
        Some((incoming, place))
    }

    pub(crate) async fn handle(&self, incoming: Incoming, place: HandshakePlace) {
        let remote = incoming.remote_address();
        let (accepted, writes) = WriteCount::of(|| incoming.accept());
        // The timeout covers only the handshake: the place must be free again even if the caller
        // stops answering.
        let shaken = timeout(HANDSHAKE_TIME_MAX, async { accepted?.await }).await;
        drop(place);
        let connection = match shaken {
            Ok(Ok(connection)) => connection,
            Ok(Err(e)) => {
                self.handshake_counts.add(Handshake::Failed);
                info!(%remote, error = %e, "handshake failed");
                return;
            }
            Err(_) => {
                self.handshake_counts.add(Handshake::Late);
                debug!(%remote, "handshake took too long");
                return;
            }
        };
        let Ok(identity) = self.identify(&connection) else {
            self.handshake_counts.add(Handshake::Stranger);
            info!(%remote, "the certificate's identity is not accepted here");
            CloseReason::Identity.close(&connection);
            return;
        };
        let revoked = identity.as_ref().filter(|i| self.revocations.is_revoked(i));
        if let Some(PeerIdentity { id, .. }) = revoked {
            // Checked before the rate limit: a revoked agent that keeps dialling must not use up
            // the admissions of others.
            self.handshake_counts.add(Handshake::Stranger);
            warn!(agent = %id, "session refused: identity is revoked");
            self.revoked_attempts.note(id, crate::now_ms());
            CloseReason::Revoked.close(&connection);
            return;
        }
        let key = identity.as_ref().map(|i| i.id.clone());
        if key.is_some() && self.gate.as_ref().is_some_and(|gate| !*gate.borrow()) {
            // Checked before the rate limit for the same reason. The client dials the next address
            // at once.
            CloseReason::Elsewhere.close(&connection);
            return;
        }
        let session = match self.register(key.clone(), &connection) {
            Ok(place) => place,
            Err(wait) => {
                self.handshake_counts.add(Handshake::TooMany);
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                debug!(%remote, wait_ms, "session refused: rate limit or bound reached");
                close_busy(&connection, wait);
                return;
            }
        };
        self.handshake_counts.add(Handshake::Done);
        let peer = Peer::new(identity, remote);
        let services = self.services.clone();
        let revocations = self.revocations.clone();
        let gate = self.gate.clone().filter(|_| key.is_some());
        session::serve(connection, writes, peer, services, revocations, gate).await;
        drop(session);
    }

    /// Reads the identity from the leaf of the verified chain. `None` means an anonymous caller.
    /// `Err` means that the leaf has no identity of our trust domain.
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

    /// Registers a session for as long as the returned value lives. `Err` is the wait that the caller
    /// is to be told.
    fn register(
        &self,
        key: Option<SpiffeId>,
        connection: &Connection,
    ) -> Result<RegisteredSession<'_>, Duration> {
        // The lock is held from the check to the insertion. Handshakes that end at the same moment
        // would exceed the bounds otherwise.
        let mut sessions = self.sessions.lock();
        if sessions.count >= SESSIONS_MAX {
            return Err(BUSY_MAX);
        }
        let place = if key.is_none() {
            let place = self
                .strangers
                .take(network(connection.remote_address().ip()));
            Some(place.ok_or(ANONYMOUS_BUSY)?)
        } else {
            self.admission.enter(Instant::now())?;
            None
        };
        sessions.add(key.clone(), connection);
        Ok(RegisteredSession {
            server: self,
            key,
            connection: connection.clone(),
            _place: place,
        })
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

/// A session in the list of a server. Dropped, also by a panic of its task, it leaves the list and
/// closes its connection: the caller would otherwise keep a session that nobody serves, and hold
/// its place for ever.
struct RegisteredSession<'a> {
    server: &'a ServerShared,
    key: Option<SpiffeId>,
    connection: Connection,
    /// Counts an anonymous session for its network.
    _place: Option<Place<IpAddr>>,
}

impl Drop for RegisteredSession<'_> {
    fn drop(&mut self) {
        self.server.forget(&self.key, self.connection.stable_id());
        if std::thread::panicking() {
            CloseReason::Failed.close(&self.connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use proto_identity::profile::{Authority, Purpose};
    use proto_identity::tls::{self, NodeCertificate};
    use proto_identity::{CertificateRequest, Credential, Key, Roots};
    use quinn::Endpoint;

    use super::*;
    use crate::{ALPN, transport};

    const HOUR: Duration = Duration::from_secs(3600);

    fn node_credential() -> Credential {
        let now = crate::now_ms();
        let root = Authority::root("mesh.test", now).unwrap();
        let nodes = root.intermediate(Purpose::Nodes, now).unwrap();
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let id = "spiffe://mesh.test/node/1".parse().unwrap();
        let leaf = nodes.issue(&id, &request, now, HOUR).unwrap();
        Credential {
            key,
            chain: vec![leaf, nodes.certificate().clone()],
            roots: vec![root.certificate().clone()],
        }
    }

    /// Opens connections; returns both sides of each, the server's first.
    async fn connections(count: usize) -> Vec<[Connection; 2]> {
        let node = node_credential();
        let own = NodeCertificate::new(&node).unwrap();
        let tls = tls::server_config(&node.roots, own, ALPN).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let server = Endpoint::server(transport::server(tls).unwrap(), any).unwrap();
        let tls = tls::client_config(Roots::Certificates(node.roots), None, ALPN).unwrap();
        let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let config = quinn::ClientConfig::new(Arc::new(tls));
        let client = Endpoint::client(any).unwrap();
        let mut opened = Vec::new();
        for _ in 0..count {
            let address = server.local_addr().unwrap();
            let dialled = client.connect_with(config.clone(), address, "metalmesh");
            let accepted = async { server.accept().await.unwrap().await };
            let (ours, theirs) = tokio::join!(accepted, dialled.unwrap());
            opened.push([ours.unwrap(), theirs.unwrap()]);
        }
        opened
    }

    #[tokio::test]
    async fn each_further_session_closes_another_one() {
        let opened = connections(SESSIONS_PER_PEER_MAX + 3).await;
        let id: SpiffeId = "spiffe://mesh.test/partition/p1/core/leaf1"
            .parse()
            .unwrap();
        let mut sessions = Sessions::default();
        for [session, _] in &opened {
            // No session is forgotten in between, as if no task of a closed one had run yet.
            sessions.add(Some(id.clone()), session);
        }
        let is_open = |[session, _]: &[Connection; 2]| session.close_reason().is_none();
        let open: Vec<bool> = opened.iter().map(is_open).collect();
        assert_eq!(open, [false, false, false, true, true, true, true]);
    }
}
