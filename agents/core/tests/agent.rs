//! The agent against a control of the test's own, on a switch in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers")]

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agents_core::config::Config;
use agents_kit::state_dir::StoredSession;
use agents_kit::{Agent, StateDir};
use agents_nos::stub::Stub;
use agents_nos::{Membership, Nos, Vni};
use proto_identity::profile::{Authority, Purpose};
use proto_identity::tls::{self, NodeCertificate};
use proto_identity::{CertificateRequest, Credential, Key};
use proto_link::{ALPN, MeshServer, MeshServerConfig, NeverRevoked, Router, now_ms};
use proto_mesh::sealed;
use proto_mesh::*;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const DOMAIN: &str = "mesh.test";
const HOUR: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(20);

/// The messages that control has received, and the state that it desires.
#[derive(Clone, Default)]
struct Control {
    registered: Arc<watch::Sender<Option<SwitchRegisterRequest>>>,
    report: Arc<watch::Sender<SwitchReport>>,
    desired: Arc<watch::Sender<SwitchDesired>>,
    /// The credential that it signs with, once it serves.
    node: Arc<OnceLock<Credential>>,
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

struct Site {
    root: Authority,
    agents: Authority,
    nodes: Authority,
}

impl Site {
    fn new() -> Self {
        let root = Authority::root(DOMAIN, now_ms()).unwrap();
        let agents = root.intermediate(Purpose::Agents, now_ms()).unwrap();
        let nodes = root.intermediate(Purpose::Nodes, now_ms()).unwrap();
        Self {
            root,
            agents,
            nodes,
        }
    }

    fn issue(&self, by: &Authority, id: &str) -> Credential {
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

    fn leaf(&self) -> Credential {
        self.issue(&self.agents, "spiffe://mesh.test/partition/p1/core/leaf1")
    }

    fn serve(&self, control: &Control) -> (SocketAddr, JoinSet<()>) {
        let node = self.issue(&self.nodes, "spiffe://mesh.test/node/1");
        let own = NodeCertificate::new(&node).unwrap();
        let server = MeshServer::bind(MeshServerConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            tls: tls::server_config(&node.roots, own, ALPN).unwrap(),
            trust_domain: DOMAIN.into(),
            router: Router::new().add(SwitchServiceServer::new(control.clone())),
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
fn fresh() -> Stub {
    Stub::with_links(["swp1", "swp2", "up1"].map(|name| (name, [2, 0, 0, 0, 0, 1]))).unwrap()
}

/// Waits until the port is where it should be.
async fn until(switch: &Stub, port: &str, place: Membership) {
    let there = async {
        while switch.observe().await.unwrap().model.ports[port].membership != place {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, there).await;
    assert!(waited.is_ok(), "{port} never came to {place:?}");
}

fn config() -> Config {
    Config {
        rack: "rack-1".into(),
        room: String::new(),
        management_ip: IpAddr::from([10, 90, 0, 11]),
        vtep: IpAddr::from([10, 91, 0, 11]),
        ports: vec!["swp*".into()],
        uplinks: vec!["up1".into()],
        gateways: Vec::new(),
        bgp: None,
    }
}

fn desired(generation: u64, swp1: u32) -> SwitchDesired {
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
fn segment(vni: u32) -> Membership {
    Membership::Segment {
        vni: Vni::new(vni).unwrap(),
        is_private: vni == 4000,
    }
}

async fn heard<T: Clone>(from: &watch::Sender<T>, want: impl FnMut(&T) -> bool) -> T {
    let mut receiver = from.subscribe();
    let found = tokio::time::timeout(PATIENCE, receiver.wait_for(want)).await;
    found.map_or_else(|_| panic!("never heard"), |value| value.unwrap().clone())
}

struct Running {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Running {
    fn start(agent: Agent, switch: Stub) -> Self {
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(agents_core::run(agent, config(), switch, stop.clone()));
        Self { stop, task }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
    }
}

#[tokio::test]
async fn a_port_follows_control_and_control_hears_of_it() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    control.desired.send_replace(desired(5, 4000));
    let (address, _server) = site.serve(&control);
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, switch.clone());

    let registered = heard(&control.registered, Option::is_some).await.unwrap();
    let names: Vec<_> = registered.ports.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["swp1", "swp2"], "an uplink is not registered");
    assert_eq!(
        (registered.rack.as_str(), registered.vtep_ip.as_str()),
        ("rack-1", "10.91.0.11")
    );
    until(&switch, "swp1", segment(4000)).await;
    let up1 = Membership::Segment {
        vni: Vni::new(4000).unwrap(),
        is_private: false,
    };
    until(&switch, "up1", up1).await;

    control.desired.send_replace(desired(6, 27));
    until(&switch, "swp1", segment(27)).await;
    let report = heard(&control.report, |r| r.applied_generation == 6).await;
    assert_eq!((report.applied_term, report.error.as_str()), (1, ""));
    assert_eq!(
        (report.ports[0].name.as_str(), report.ports[0].vni),
        ("swp1", 27)
    );

    control.desired.send_replace(desired(4, 99));
    control.desired.send_replace(desired(7, 0));
    until(&switch, "swp1", Membership::Quarantine).await;
    let moved_to_99 = switch
        .applied()
        .into_iter()
        .any(|d| format!("{d:?}").contains("99"));
    assert!(!moved_to_99, "an older order is not carried out");
    running.stop().await;
}

#[tokio::test]
async fn drift_is_repaired_and_a_fault_is_told_and_outlived() {
    let (site, control, switch) = (Site::new(), Control::default(), fresh());
    control.desired.send_replace(desired(1, 4000));
    let (address, _server) = site.serve(&control);
    let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
    let running = Running::start(agent, switch.clone());
    until(&switch, "swp1", segment(4000)).await;

    switch.drift(|seen| {
        let port = seen.model.ports.get_mut("swp1").unwrap();
        port.membership = Membership::Foreign("br0".into());
    });
    until(&switch, "swp1", segment(4000)).await;

    switch.fail_next(2);
    control.desired.send_replace(desired(2, 27));
    let report = heard(&control.report, |r| !r.error.is_empty()).await;
    assert!(report.error.contains("fault injected"), "{}", report.error);
    assert_eq!(
        report.applied_generation, 1,
        "a failed order is not applied"
    );
    until(&switch, "swp1", segment(27)).await;
    heard(&control.report, |r| {
        r.applied_generation == 2 && r.error.is_empty()
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_rebooted_switch_forwards_without_control() {
    let (site, control) = (Site::new(), Control::default());
    control.desired.send_replace(desired(3, 27));
    let (address, server) = site.serve(&control);
    let home = tempfile::tempdir().unwrap();
    let dir = StateDir::open(&home.path().join("core")).unwrap();
    let session = StoredSession {
        credential: site.leaf(),
        control: vec![address.to_string()],
        ticket_id: String::new(),
    };
    dir.store(&session).unwrap();

    let before = fresh();
    let running = Running::start(
        Agent::resume(dir.clone(), Vec::new()).unwrap(),
        before.clone(),
    );
    until(&before, "swp1", segment(27)).await;
    running.stop().await;
    drop(server);

    let rebooted = fresh();
    let running = Running::start(Agent::resume(dir, Vec::new()).unwrap(), rebooted.clone());
    until(&rebooted, "swp1", segment(27)).await;
    running.stop().await;
}
