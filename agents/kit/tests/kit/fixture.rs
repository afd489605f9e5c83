//! A control that hands out certificates of any life and sends what it is told to.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents_kit::LogFormat;
use agents_kit::{AgentArgs, Credential, Key};
use proto_identity::profile::{Authority, Purpose};
use proto_identity::ticket::JoinTicket;
use proto_identity::tls::{NodeCertificate, server_config};
use proto_identity::{CertificateRequest, SpiffeId, sha256_hex};
use proto_link::*;
use proto_mesh::sealed;
use proto_mesh::*;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Longer than any wait of a test that works.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const CORE: &str = "spiffe://mesh.test/partition/p1/core/leaf1";

/// The data that outlives a restart of control.
pub struct Ca {
    root: Authority,
    agents: Authority,
    nodes: Authority,
    /// Life of the certificates that are handed out, seconds.
    pub life: AtomicU64,
    /// The BMC nonce that a join must show. Empty means that none is required.
    pub nonce: Mutex<String>,
    pub joins: AtomicUsize,
    pub renewals: AtomicUsize,
    pub resumptions: AtomicUsize,
    pub desired: watch::Sender<SwitchDesired>,
}

impl Ca {
    pub fn new() -> Arc<Self> {
        let now = now_ms();
        let root = Authority::root("mesh.test", now).unwrap();
        Arc::new(Self {
            agents: root.intermediate(Purpose::Agents, now).unwrap(),
            nodes: root.intermediate(Purpose::Nodes, now).unwrap(),
            root,
            life: AtomicU64::new(3600),
            nonce: Mutex::default(),
            joins: AtomicUsize::new(0),
            renewals: AtomicUsize::new(0),
            resumptions: AtomicUsize::new(0),
            desired: watch::Sender::new(state(1, 1, 1)),
        })
    }

    pub fn ticket(&self, id: &str, addr: SocketAddr) -> JoinTicket {
        JoinTicket {
            id: id.into(),
            secret: [7; 32],
            roots: vec![sha256_hex(self.root.certificate())],
            control: vec![addr.to_string()],
            tpm: false,
        }
    }

    /// A state as control would send it to an agent, signed by a node.
    pub fn sealed(&self, audience: &str, state: SwitchDesired) -> Vec<u8> {
        let life = Duration::from_secs(3600);
        let node = self.credential("spiffe://mesh.test/node/1", now_ms(), life);
        let audience = audience.parse().unwrap();
        let sealed = sealed::seal(&node, &audience, state, now_ms()).unwrap();
        prost::Message::encode_to_vec(&sealed)
    }

    pub fn credential(&self, id: &str, from_ms: u64, life: Duration) -> Credential {
        self.credential_of(Key::generate().unwrap(), id, from_ms, life)
    }

    pub fn credential_of(&self, key: Key, id: &str, from_ms: u64, life: Duration) -> Credential {
        let answer = self
            .issue(id, &key.request().unwrap(), from_ms, life)
            .unwrap();
        let list = |l: Vec<Vec<u8>>| l.into_iter().map(Into::into).collect();
        Credential {
            key,
            chain: list(answer.chain),
            roots: list(answer.roots),
        }
    }

    fn issue(
        &self,
        id: &str,
        csr: &[u8],
        from_ms: u64,
        life: Duration,
    ) -> Result<Certificate, LinkStatus> {
        let id: SpiffeId = id.parse().unwrap();
        let request = CertificateRequest::verify(csr)
            .map_err(|e| LinkStatus::invalid_argument(e.to_string()))?;
        let by = match Purpose::of(id.subject()) {
            Purpose::Agents => &self.agents,
            Purpose::Nodes | Purpose::Peers => &self.nodes,
        };
        let leaf = by.issue(&id, &request, from_ms, life).unwrap();
        Ok(Certificate {
            chain: vec![leaf.to_vec(), by.certificate().to_vec()],
            roots: vec![self.root.certificate().to_vec()],
            not_after_ms: from_ms + u64::try_from(life.as_millis()).unwrap(),
            identity: id.to_string(),
        })
    }

    fn issue_now(&self, csr: &[u8]) -> Result<Certificate, LinkStatus> {
        let life = Duration::from_secs(self.life.load(Ordering::SeqCst));
        self.issue(CORE, csr, now_ms(), life)
    }
}

/// A switch's state whose content is `vni`.
pub fn state(term: u64, generation: u64, vni: u32) -> SwitchDesired {
    let port = PortIntent {
        name: "swp1".into(),
        vni,
        admin_up: true,
        ..PortIntent::default()
    };
    SwitchDesired {
        term,
        generation,
        ports: vec![port],
        ..SwitchDesired::default()
    }
}

/// With what it signs desired state, once it is to.
#[derive(Clone)]
struct Fake(Arc<Ca>, Credential);

impl EnrolService for Fake {
    async fn join(&self, _: &Peer, request: JoinRequest) -> Result<Certificate, LinkStatus> {
        if request.secret != [7; 32] {
            return Err(LinkStatus::unauthenticated("wrong secret").with_catalogue(1501));
        }
        let nonce = self.0.nonce.lock().unwrap().clone();
        if !nonce.is_empty() && request.bmc_nonce != nonce.as_bytes() {
            return Err(LinkStatus::unavailable("nonce awaited").with_catalogue(1515));
        }
        self.0.joins.fetch_add(1, Ordering::SeqCst);
        self.0.issue_now(&request.csr)
    }

    async fn challenge_tpm(
        &self,
        _: &Peer,
        _: TpmChallengeRequest,
    ) -> Result<TpmChallenge, LinkStatus> {
        Err(LinkStatus::unimplemented("no TPM here"))
    }

    async fn resume(&self, _: &Peer, request: ResumeRequest) -> Result<Certificate, LinkStatus> {
        self.0.resumptions.fetch_add(1, Ordering::SeqCst);
        self.0.issue_now(&request.csr)
    }
}

impl IdentityService for Fake {
    async fn renew(&self, _: &Peer, request: RenewRequest) -> Result<Certificate, LinkStatus> {
        self.0.renewals.fetch_add(1, Ordering::SeqCst);
        self.0.issue_now(&request.csr)
    }
}

impl SwitchService for Fake {
    async fn register(
        &self,
        _: &Peer,
        _: SwitchRegisterRequest,
    ) -> Result<SwitchRegisterResponse, LinkStatus> {
        Ok(SwitchRegisterResponse {})
    }

    async fn desired(
        &self,
        peer: &Peer,
        _: SwitchDesiredRequest,
        mut out: Sink<'_, SwitchDesired>,
    ) -> Result<(), LinkStatus> {
        let mut desired = self.0.desired.subscribe();
        loop {
            let state = desired.borrow_and_update().clone();
            let sealed = sealed::seal(&self.1, peer.id().unwrap(), state, now_ms()).unwrap();
            out.send(&sealed).await?;
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

pub struct Control {
    pub addr: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Control {
    pub fn start(ca: &Arc<Ca>) -> Self {
        Self::start_at(ca, "127.0.0.1:0".parse().unwrap())
    }

    pub fn start_at(ca: &Arc<Ca>, bind: SocketAddr) -> Self {
        let life = Duration::from_secs(3600);
        let node = ca.credential("spiffe://mesh.test/node/1", now_ms(), life);
        let own = NodeCertificate::new(&node).unwrap();
        let fake = Fake(ca.clone(), node);
        let server = MeshServer::bind(MeshServerConfig {
            bind,
            tls: server_config(&[ca.root.certificate().clone()], own, ALPN).unwrap(),
            trust_domain: "mesh.test".into(),
            router: Router::new()
                .add(EnrolServiceServer::new(fake.clone()))
                .add(IdentityServiceServer::new(fake.clone()))
                .add(SwitchServiceServer::new(fake)),
            revocations: Arc::new(NeverRevoked::default()),
        })
        .unwrap();
        let addr = server.local_addr().unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.run(stop.clone()));
        Self { addr, stop, tasks }
    }

    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// A directory of an agent, and its ticket file.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn write_ticket(&self, ticket: &JoinTicket, mode: u32) -> PathBuf {
        let path = self.dir.path().join(format!("{}.ticket", ticket.id));
        std::fs::write(&path, ticket.encode()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub fn args(&self, ticket_file: Option<PathBuf>) -> AgentArgs {
        AgentArgs {
            control: vec![],
            state_dir: self.state_dir(),
            ticket_file,
            offline: false,
            tpm: agents_kit::tpm::TPM_PATH.into(),
            log: LogFormat::Text,
            metrics: None,
            otlp: None,
        }
    }
}

pub fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Waits until `what` holds.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        tokio::task::yield_now().await;
    }
}
