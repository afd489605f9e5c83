//! A CA, a server with services that wait when told to, and clients of any identity.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use proto_identity::profile::{Authority, Purpose};
use proto_identity::tls::{self, NodeCertificate};
use proto_identity::{CertificateDer, CertificateRequest, Credential, Key, PeerIdentity, Roots};
use proto_link::*;
use proto_mesh::*;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub const DOMAIN: &str = "mesh.test";
pub const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any wait of a test that works.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const CORE: &str = "spiffe://mesh.test/partition/p1/core/leaf1";

pub struct Ca {
    pub root: Authority,
    agents: Authority,
    nodes: Authority,
}

impl Ca {
    pub fn new() -> Self {
        Self::made_at(now_ms())
    }

    /// An authority from another time.
    pub fn made_at(now: u64) -> Self {
        let root = Authority::root(DOMAIN, now).unwrap();
        let agents = root.intermediate(Purpose::Agents, now).unwrap();
        let nodes = root.intermediate(Purpose::Nodes, now).unwrap();
        Self {
            root,
            agents,
            nodes,
        }
    }

    pub fn roots(&self) -> Vec<CertificateDer<'static>> {
        vec![self.root.certificate().clone()]
    }

    pub fn issue(&self, id: &str, life: Duration) -> Credential {
        let id = id.parse::<proto_identity::SpiffeId>().unwrap();
        let by = match Purpose::of(id.subject()) {
            Purpose::Agents => &self.agents,
            Purpose::Nodes | Purpose::Peers => &self.nodes,
        };
        self.issue_by(by, &id, now_ms(), life)
    }

    /// By a control node whose clock shows another time.
    pub fn issue_at(&self, id: &str, now_ms: u64) -> Credential {
        let id = id.parse::<proto_identity::SpiffeId>().unwrap();
        let by = match Purpose::of(id.subject()) {
            Purpose::Agents => &self.agents,
            Purpose::Nodes | Purpose::Peers => &self.nodes,
        };
        self.issue_by(by, &id, now_ms, HOUR)
    }

    /// By an agent that takes its own certificate for an authority's.
    pub fn issue_by_agent(&self, agent: &Credential, id: &str) -> Credential {
        let leaf = agent.chain[0].to_vec();
        let by = Authority::from_parts(&agent.key.to_pkcs8(), leaf).unwrap();
        let mut forged = self.issue_by(&by, &id.parse().unwrap(), now_ms(), HOUR);
        forged.chain.push(self.agents.certificate().clone());
        forged
    }

    /// Two hours ago, for one.
    pub fn issue_ended(&self, id: &str) -> Credential {
        let id = id.parse::<proto_identity::SpiffeId>().unwrap();
        let by = match Purpose::of(id.subject()) {
            Purpose::Agents => &self.agents,
            Purpose::Nodes | Purpose::Peers => &self.nodes,
        };
        self.issue_by(by, &id, now_ms() - 7_200_000, HOUR)
    }

    /// By the wrong intermediate.
    pub fn issue_crossed(&self, id: &str) -> Credential {
        self.issue_by(&self.agents, &id.parse().unwrap(), now_ms(), HOUR)
    }

    fn issue_by(
        &self,
        by: &Authority,
        id: &proto_identity::SpiffeId,
        from_ms: u64,
        life: Duration,
    ) -> Credential {
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let leaf = by.issue(id, &request, from_ms, life).unwrap();
        Credential {
            key,
            chain: vec![leaf, by.certificate().clone()],
            roots: self.roots(),
        }
    }
}

/// Revokes by fingerprint.
pub struct Revoked(
    watch::Sender<Vec<String>>,
    watch::Sender<u64>,
    /// `true` if the next question ends in a panic.
    AtomicBool,
);

impl Revoked {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(
            watch::Sender::new(Vec::new()),
            watch::Sender::new(0),
            AtomicBool::new(false),
        ))
    }

    /// One session asks, and its task panics.
    pub fn panic_once(&self) {
        self.2.store(true, Ordering::SeqCst);
        self.1.send_modify(|n| *n += 1);
    }

    pub fn add(&self, fingerprint: String) {
        self.0.send_modify(|list| list.push(fingerprint));
        self.1.send_modify(|n| *n += 1);
    }
}

impl Revocations for Revoked {
    fn is_revoked(&self, peer: &PeerIdentity) -> bool {
        assert!(!self.2.swap(false, Ordering::SeqCst), "as the test wants");
        self.0.borrow().contains(&peer.fingerprint)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.1.subscribe()
    }
}

/// Calls of `register` take a permit; streams send what `desired` holds.
pub struct Gate {
    pub permits: Semaphore,
    pub entered: AtomicUsize,
    pub desired: watch::Sender<u64>,
    pub gone: mpsc::UnboundedSender<()>,
}

#[derive(Clone)]
pub struct Fake(pub Arc<Gate>);

struct Guard(mpsc::UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        // A test that is over no longer listens.
        self.0.send(()).ok();
    }
}

impl EnrolService for Fake {
    async fn join(&self, peer: &Peer, request: JoinRequest) -> Result<Certificate, LinkStatus> {
        assert!(peer.id().is_none());
        if request.ticket_id == "bad" {
            return Err(LinkStatus::permission_denied("no such ticket").with_catalogue(1501));
        }
        Ok(Certificate {
            identity: request.ticket_id,
            ..Default::default()
        })
    }

    async fn challenge_tpm(
        &self,
        _: &Peer,
        _: TpmChallengeRequest,
    ) -> Result<TpmChallenge, LinkStatus> {
        Err(LinkStatus::unimplemented("no TPM here"))
    }

    async fn resume(&self, _: &Peer, _: ResumeRequest) -> Result<Certificate, LinkStatus> {
        Err(LinkStatus::permission_denied("no"))
    }
}

impl SwitchService for Fake {
    async fn register(
        &self,
        peer: &Peer,
        _: SwitchRegisterRequest,
    ) -> Result<SwitchRegisterResponse, LinkStatus> {
        assert_eq!(peer.id().unwrap().to_string(), CORE);
        self.0.entered.fetch_add(1, Ordering::SeqCst);
        let _gone = Guard(self.0.gone.clone());
        drop(self.0.permits.acquire().await);
        Ok(SwitchRegisterResponse {})
    }

    async fn desired(
        &self,
        _: &Peer,
        _: SwitchDesiredRequest,
        mut out: Sink<'_, SwitchDesired>,
    ) -> Result<(), LinkStatus> {
        let _gone = Guard(self.0.gone.clone());
        let mut desired = self.0.desired.subscribe();
        loop {
            let generation = *desired.borrow_and_update();
            if generation == u64::MAX {
                return Ok(());
            }
            out.send(&SwitchDesired {
                generation,
                ..Default::default()
            })
            .await?;
            desired
                .changed()
                .await
                .map_err(|_| LinkStatus::unavailable("over"))?;
        }
    }

    async fn report(&self, _: &Peer, _: SwitchReport) -> Result<SwitchReportResponse, LinkStatus> {
        Ok(SwitchReportResponse {})
    }
}

pub struct Server {
    pub addr: SocketAddr,
    pub gate: Arc<Gate>,
    pub gone: mpsc::UnboundedReceiver<()>,
    pub revoked: Arc<Revoked>,
    pub presence: Presence,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Server {
    pub fn start(ca: &Ca, node: &Credential) -> Self {
        Self::start_at(ca, node, "127.0.0.1:0".parse().unwrap())
    }

    pub fn start_at(ca: &Ca, node: &Credential, bind: SocketAddr) -> Self {
        Self::start_gated(ca, node, bind, None)
    }

    /// Serves sessions only while the gate is open.
    pub fn start_gated(
        ca: &Ca,
        node: &Credential,
        bind: SocketAddr,
        open: Option<watch::Receiver<bool>>,
    ) -> Self {
        Self::start_with(ca, node, bind, |server| match open {
            Some(open) => server.with_gate(open).unwrap(),
            None => server,
        })
    }

    /// Sets the server up in its own way.
    pub fn start_with(
        ca: &Ca,
        node: &Credential,
        bind: SocketAddr,
        set_up: impl FnOnce(MeshServer) -> MeshServer,
    ) -> Self {
        let (gone_tx, gone) = mpsc::unbounded_channel();
        let gate = Arc::new(Gate {
            permits: Semaphore::new(0),
            entered: AtomicUsize::new(0),
            desired: watch::Sender::new(1),
            gone: gone_tx,
        });
        let fake = Fake(gate.clone());
        let revoked = Revoked::new();
        let own = NodeCertificate::new(node).unwrap();
        let config = MeshServerConfig {
            bind,
            tls: tls::server_config(&ca.roots(), own, ALPN).unwrap(),
            trust_domain: DOMAIN.into(),
            router: Router::new()
                .add(EnrolServiceServer::new(fake.clone()))
                .add(SwitchServiceServer::new(fake)),
            revocations: revoked.clone(),
        };
        let server = MeshServer::bind_with_reset_key(config, &[7; 32]).unwrap();
        let server = set_up(server);
        let addr = server.local_addr().unwrap();
        let presence = server.presence();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.run(stop.clone()));
        Self {
            addr,
            gate,
            gone,
            revoked,
            presence,
            stop,
            tasks,
        }
    }

    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

pub fn client(addr: SocketAddr, roots: Roots, credential: Option<&Credential>) -> MeshClient {
    let tls = tls::client_config(roots, credential, ALPN).unwrap();
    MeshClient::new(MeshClientConfig::new(vec![addr.to_string()], tls)).unwrap()
}

/// Waits until the client's state is as `want` says.
pub async fn until(mesh: &MeshClient, want: impl Fn(&SessionState) -> bool) -> SessionState {
    let mut state = mesh.state();
    let found = tokio::time::timeout(PATIENCE, state.wait_for(|s| want(s))).await;
    match found {
        Ok(state) => state.unwrap().clone(),
        Err(_) => panic!("state stays {:?}", mesh.state().borrow().clone()),
    }
}

/// Waits until `what` holds.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        tokio::task::yield_now().await;
    }
}
