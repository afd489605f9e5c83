//! A control of the test's own: real QUIC, real certificates, services that remember.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents_kit::{Agent, Credential, Key};
use proto_identity::profile::{Authority, Purpose};
use proto_identity::tls::{self, NodeCertificate};
use proto_identity::{CertificateRequest, SpiffeId};
use proto_link::{ALPN, MeshServer, MeshServerConfig, NeverRevoked, Router};
use proto_mesh::{
    BmcAction, BmcDesired, BmcDesiredRequest, BmcOrder, BmcOrderDone, BmcOrderDoneResponse,
    BmcReport, BmcReportResponse, BmcService, BmcServiceServer, BmcStatus, LinkStatus, Peer, Sink,
    UpdateServiceServer,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::replacing::Updates;

const DOMAIN: &str = "mesh.test";
/// Longest wait for a condition of these tests. A longer one fails the test.
const WAIT: Duration = Duration::from_secs(180);

pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64
}

/// What the service remembers.
#[derive(Default)]
pub(crate) struct Memory {
    /// By address.
    statuses: BTreeMap<String, BmcStatus>,
    done: Vec<BmcOrderDone>,
    /// How many ends to turn away before one is taken.
    refuse: usize,
}

#[derive(Clone)]
struct Service {
    memory: Arc<Mutex<Memory>>,
    desired: watch::Sender<BmcDesired>,
}

impl BmcService for Service {
    async fn desired(
        &self,
        _: &Peer,
        _: BmcDesiredRequest,
        mut out: Sink<'_, BmcDesired>,
    ) -> Result<(), LinkStatus> {
        let mut desired = self.desired.subscribe();
        loop {
            let message = desired.borrow_and_update().clone();
            out.send(&message).await?;
            desired
                .changed()
                .await
                .map_err(|_| LinkStatus::unavailable("over"))?;
        }
    }

    async fn report(&self, _: &Peer, report: BmcReport) -> Result<BmcReportResponse, LinkStatus> {
        let mut memory = self.memory.lock().unwrap();
        for status in report.bmcs {
            memory.statuses.insert(status.address.clone(), status);
        }
        Ok(BmcReportResponse::default())
    }

    async fn order_done(
        &self,
        _: &Peer,
        done: BmcOrderDone,
    ) -> Result<BmcOrderDoneResponse, LinkStatus> {
        let mut memory = self.memory.lock().unwrap();
        if memory.refuse > 0 {
            memory.refuse -= 1;
            return Err(LinkStatus::unavailable("not now"));
        }
        memory.done.push(done);
        Ok(BmcOrderDoneResponse {})
    }
}

/// A running control with an agent joined to it.
pub(crate) struct Control {
    service: Service,
    pub(crate) updates: Updates,
    pub(crate) agent: Agent,
    /// Its address.
    pub(crate) address: String,
    /// The identity of an agent that runs as a program of its own.
    pub(crate) program: Credential,
    orders: Mutex<Vec<BmcOrder>>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Control {
    pub(crate) fn start() -> Self {
        let root = Authority::root(DOMAIN, now_ms()).unwrap();
        let issue = |purpose, id: &str| {
            let by = root.intermediate(purpose, now_ms()).unwrap();
            let key = Key::generate().unwrap();
            let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
            let id: SpiffeId = id.parse().unwrap();
            let leaf = by
                .issue(&id, &request, now_ms(), Duration::from_secs(3600))
                .unwrap();
            Credential {
                key,
                chain: vec![leaf, by.certificate().clone()],
                roots: vec![root.certificate().clone()],
            }
        };
        let node = issue(Purpose::Nodes, &format!("spiffe://{DOMAIN}/node/n1"));
        let own = NodeCertificate::new(&node).unwrap();
        let memory = Arc::default();
        let desired = watch::Sender::new(BmcDesired::default());
        let service = Service { memory, desired };
        let updates = Updates::new();
        let server = MeshServer::bind(MeshServerConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            tls: tls::server_config(&node.roots, own, ALPN).unwrap(),
            trust_domain: DOMAIN.into(),
            router: Router::new()
                .add(BmcServiceServer::new(service.clone()))
                .add(UpdateServiceServer::new(updates.clone())),
            revocations: Arc::new(NeverRevoked::default()),
        })
        .unwrap();
        let address = server.local_addr().unwrap().to_string();
        let credential = issue(
            Purpose::Agents,
            &format!("spiffe://{DOMAIN}/partition/p1/bmc/b1"),
        );
        let program = issue(
            Purpose::Agents,
            &format!("spiffe://{DOMAIN}/partition/p1/bmc/b2"),
        );
        let agent = Agent::from_credential(credential, vec![address.clone()]).unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.run(stop.clone()));
        Self {
            service,
            updates,
            agent,
            address,
            program,
            orders: Mutex::default(),
            stop,
            _tasks: tasks,
        }
    }

    pub(crate) fn refuse(&self, times: usize) {
        self.service.memory.lock().unwrap().refuse = times;
    }

    /// Orders something as a control that tells no bindings, and returns how it ended.
    pub(crate) async fn order(&self, machine: &str, action: BmcAction) -> BmcOrderDone {
        self.order_in(machine, action, 0, 0).await
    }

    /// Orders something for a binding and returns how it ended.
    pub(crate) async fn order_in(
        &self,
        machine: &str,
        action: BmcAction,
        era: u64,
        epoch: u64,
    ) -> BmcOrderDone {
        let id = {
            let mut orders = self.orders.lock().unwrap();
            let id = format!("00000000-0000-7000-8000-{:012x}", orders.len());
            orders.push(BmcOrder {
                traceparent: String::new(),
                id: id.clone(),
                machine_uuid: machine.into(),
                action: action.into(),
                remaining_ms: 20_000,
                bmc_address: String::new(),
                epoch,
                era,
            });
            id
        };
        self.send();
        let mut found = None;
        eventually(&format!("the end of {action:?}"), || {
            let memory = self.service.memory.lock().unwrap();
            found = memory.done.iter().find(|done| done.id == id).cloned();
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Sends the whole list again with a new generation.
    pub(crate) fn send(&self) {
        let orders = self.orders.lock().unwrap().clone();
        self.service.desired.send_modify(|desired| {
            desired.generation += 1;
            desired.orders = orders;
        });
    }

    pub(crate) fn done_count(&self, id: &str) -> usize {
        let memory = self.service.memory.lock().unwrap();
        memory.done.iter().filter(|done| done.id == id).count()
    }

    /// The status of a BMC, once it is as wanted.
    pub(crate) async fn status(
        &self,
        address: &str,
        want: impl Fn(&BmcStatus) -> bool,
    ) -> BmcStatus {
        let mut found = None;
        eventually(&format!("the status of {address}"), || {
            let memory = self.service.memory.lock().unwrap();
            found = memory
                .statuses
                .get(address)
                .filter(|status| want(status))
                .cloned();
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    pub(crate) async fn stop(self) {
        self.agent.close().await;
        self.stop.cancel();
    }
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + WAIT;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        ticks.tick().await;
    }
}
