//! A control of the test's own, and short ways to write states.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agents_core::config::Config;
use agents_kit::state_dir::StoredSession;
use agents_kit::{Agent, StateDir};
use agents_nos::stub::Stub;
use agents_nos::{Capability, Membership, Nos, NosError, Observation, Step, Vni};
use proto_identity::profile::{Authority, Purpose};
use proto_identity::tls::{self, NodeCertificate};
use proto_identity::{CertificateRequest, Credential, Key};
use proto_link::{ALPN, MeshServer, MeshServerConfig, NeverRevoked, Router, now_ms};
use proto_mesh::sealed;
use proto_mesh::*;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const DOMAIN: &str = "mesh.test";
const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The messages that control has received, and the state that it desires.
#[derive(Clone, Default)]
pub(crate) struct Control {
    pub(crate) registered: Arc<watch::Sender<Option<SwitchRegisterRequest>>>,
    pub(crate) report: Arc<watch::Sender<SwitchReport>>,
    pub(crate) desired: Arc<watch::Sender<SwitchDesired>>,
    /// The credential that it signs with, once it serves.
    pub(crate) node: Arc<OnceLock<Credential>>,
}

impl SwitchService for Control {
    async fn register(
        &self,
        _: &Peer,
        request: SwitchRegisterRequest,
    ) -> Result<SwitchRegisterResponse, LinkStatus> {
        self.registered.send_replace(Some(request));
        Ok(SwitchRegisterResponse::default())
    }

    async fn desired(
        &self,
        peer: &Peer,
        _: SwitchDesiredRequest,
        mut out: Sink<'_, SwitchDesired>,
    ) -> Result<(), LinkStatus> {
        let mut desired = self.desired.subscribe();
        loop {
            let next = desired.borrow_and_update().clone();
            let (node, agent) = (self.node.get().unwrap(), peer.id().unwrap());
            let next = sealed::seal(node, agent, next, now_ms()).unwrap();
            out.send(&next).await?;
            desired
                .changed()
                .await
                .map_err(|_| LinkStatus::unavailable("over"))?;
        }
    }

    async fn report(
        &self,
        _: &Peer,
        report: SwitchReport,
    ) -> Result<SwitchReportResponse, LinkStatus> {
        self.report.send_replace(report);
        Ok(SwitchReportResponse::default())
    }
}

pub(crate) struct Site {
    root: Authority,
    agents: Authority,
    nodes: Authority,
}

impl Site {
    pub(crate) fn new() -> Self {
        let root = Authority::root(DOMAIN, now_ms()).unwrap();
        let agents = root.intermediate(Purpose::Agents, now_ms()).unwrap();
        let nodes = root.intermediate(Purpose::Nodes, now_ms()).unwrap();
        Self {
            root,
            agents,
            nodes,
        }
    }

    pub(crate) fn issue(&self, by: &Authority, id: &str) -> Credential {
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let leaf = by
            .issue(&id.parse().unwrap(), &request, now_ms(), HOUR)
            .unwrap();
        let chain = vec![leaf, by.certificate().clone()];
        Credential {
            key,
            chain,
            roots: vec![self.root.certificate().clone()],
        }
    }

    pub(crate) fn node(&self) -> Credential {
        self.issue(&self.nodes, "spiffe://mesh.test/node/1")
    }

    pub(crate) fn leaf(&self) -> Credential {
        self.issue(&self.agents, "spiffe://mesh.test/partition/p1/core/leaf1")
    }

    pub(crate) fn serve(&self, control: &Control) -> (SocketAddr, JoinSet<()>) {
        self.serve_with(control, Router::new())
    }

    /// Serves other services, too.
    pub(crate) fn serve_with(
        &self,
        control: &Control,
        others: Router,
    ) -> (SocketAddr, JoinSet<()>) {
        let node = self.node();
        let own = NodeCertificate::new(&node).unwrap();
        let server = MeshServer::bind(MeshServerConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            tls: tls::server_config(&node.roots, own, ALPN).unwrap(),
            trust_domain: DOMAIN.into(),
            router: others.add(SwitchServiceServer::new(control.clone())),
            revocations: Arc::new(NeverRevoked::default()),
        })
        .unwrap();
        control.node.set(node).unwrap();
        let address = server.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.run(CancellationToken::new()));
        (address, tasks)
    }
}

/// The switch of each test.
pub(crate) fn fresh() -> Stub {
    Stub::with_links(["swp1", "swp2", "up1"].map(|name| (name, [2, 0, 0, 0, 0, 1]))).unwrap()
}

/// Waits until the port is where it should be.
pub(crate) async fn until(switch: &Stub, port: &str, place: Membership) {
    let there = async {
        while switch.observe().await.unwrap().model.ports[port].membership != place {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, there).await;
    assert!(waited.is_ok(), "{port} never came to {place:?}");
}

pub(crate) fn config() -> Config {
    Config {
        uplinks: vec!["up1".into()],
        ..Config::new("rack-1", [10, 90, 0, 11].into(), [10, 91, 0, 11].into())
    }
}

pub(crate) fn desired(generation: u64, swp1: u32) -> SwitchDesired {
    let port = |name: &str, vni| PortIntent {
        name: name.into(),
        vni,
        admin_up: true,
        ..PortIntent::default()
    };
    let segment = |vni| Segment {
        vni,
        provisioning: vni == 4000,
        mtu: 1500,
        ..Segment::default()
    };
    let mut vnis = vec![4000];
    vnis.extend((swp1 != 0 && swp1 != 4000).then_some(swp1));
    SwitchDesired {
        term: 1,
        generation,
        ports: vec![port("swp1", swp1), port("swp2", 0)],
        segments: vnis.into_iter().map(segment).collect(),
        ..SwitchDesired::default()
    }
}

/// The place of a machine's port in a segment.
pub(crate) fn segment(vni: u32) -> Membership {
    Membership::Segment {
        vni: Vni::new(vni).unwrap(),
        is_private: vni == 4000,
    }
}

pub(crate) async fn heard<T: Clone>(from: &watch::Sender<T>, want: impl FnMut(&T) -> bool) -> T {
    let mut receiver = from.subscribe();
    let found = tokio::time::timeout(PATIENCE, receiver.wait_for(want)).await;
    found.map_or_else(|_| panic!("never heard"), |value| value.unwrap().clone())
}

pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Running {
    pub(crate) fn start<S: Nos + 'static>(agent: Agent, config: Config, switch: S) -> Self {
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(agents_core::run(agent, config, switch, stop.clone()));
        Self { stop, task }
    }

    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
    }
}

/// A state directory of the leaf, which has joined control at this address.
pub(crate) fn joined(home: &tempfile::TempDir, site: &Site, control: SocketAddr) -> StateDir {
    let dir = StateDir::open(&home.path().join("core")).unwrap();
    let session = StoredSession {
        credential: site.leaf(),
        control: vec![control.to_string()],
        ticket_id: String::new(),
    };
    dir.store(&session).unwrap();
    dir
}

/// A switch that counts its observations, and perhaps tells nobody of changes.
pub(crate) struct Counted<S> {
    switch: S,
    observations: Arc<AtomicU64>,
    is_silent: bool,
}

impl<S: Nos> Counted<S> {
    pub(crate) fn new(switch: S) -> Self {
        Self {
            switch,
            observations: Arc::default(),
            is_silent: false,
        }
    }

    pub(crate) fn silent(switch: S) -> Self {
        Self {
            is_silent: true,
            ..Self::new(switch)
        }
    }

    pub(crate) fn observations(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.observations)
    }
}

impl<S: Nos> Nos for Counted<S> {
    fn vendor(&self) -> &'static str {
        self.switch.vendor()
    }

    fn version(&self) -> String {
        self.switch.version()
    }

    fn capabilities(&self) -> &'static [Capability] {
        self.switch.capabilities()
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        self.observations.fetch_add(1, Ordering::Relaxed);
        self.switch.observe().await
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        self.switch.apply(step).await
    }

    async fn changed(&self) {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        self.switch.changed().await;
    }

    fn neighbours(&self) -> Option<agents_nos::lldp::Neighbours> {
        self.switch.neighbours()
    }
}
