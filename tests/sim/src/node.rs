//! What runs on one simulated node: the store, who answers its peers, and who answers clients.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base_runtime::Chain;
use control_store::sim::{Probe, SimDisk};
use control_store::{
    MemberChange, MembershipError, OpenError, SnapshotBytes, StartMode, Store, StoreConfig,
    StoreError,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use turmoil::net::TcpListener;
use uuid::Uuid;

use crate::clock::SimClock;
use crate::net::{self, SimTransport};
use crate::plan::{NODES_MAX, Plan};
use crate::random::Random;
use crate::run::Snapshots;
use crate::trace::Trace;
use crate::workload::Workload;

/// Requests that wait at a node; more are dropped, as by a node that is overrun.
const MAILBOX_MAX: usize = 256;

/// What everybody shares; the run's thread is the only one.
pub(crate) type Shared<W> = Rc<RefCell<World<W>>>;

/// The simulated world outside the network.
#[derive(Debug)]
pub(crate) struct World<W: Workload> {
    pub(crate) plan: Plan,
    pub(crate) nodes: BTreeMap<u64, Node<W>>,
    /// Known once the first node has formed the cluster.
    pub(crate) cluster: Option<Uuid>,
    pub(crate) trace: Trace,
    /// The part that clients share.
    pub(crate) work: W,
    pub(crate) snapshots: Snapshots,
    /// The cluster is what the plan wants; faults may begin.
    pub(crate) is_formed: bool,
    /// Faults are over and clients stop.
    pub(crate) is_calm: bool,
    /// Virtual time as of the last step, milliseconds.
    pub(crate) now_ms: u64,
    /// The first thing that must not happen and did.
    pub(crate) failure: Option<String>,
}

impl<W: Workload> World<W> {
    pub(crate) fn new(plan: Plan, is_loud: bool) -> Self {
        let mut random = Random::new(plan.seed, "disks");
        let nodes = (1..=NODES_MAX).map(|id| (id, Node::new(random.next())));
        Self {
            nodes: nodes.collect(),
            cluster: None,
            trace: Trace::new(is_loud),
            work: W::default(),
            snapshots: Snapshots::default(),
            is_formed: false,
            is_calm: false,
            now_ms: 0,
            failure: None,
            plan,
        }
    }

    /// What runs, and what it is at.
    pub(crate) fn probes(&self) -> impl Iterator<Item = (u64, &Store<W::Machine>, Probe)> {
        let running = self.nodes.iter();
        running.filter_map(|(id, node)| {
            let store = node.store.as_ref()?;
            Some((*id, store, store.probe()))
        })
    }

    /// The leader of the newest term that has one.
    fn led(&self) -> Option<(u64, Probe)> {
        let leaders = self.probes().filter(|(_, _, probe)| probe.leads);
        let newest = leaders.max_by_key(|(_, _, probe)| probe.term);
        newest.map(|(id, _, probe)| (id, probe))
    }

    pub(crate) fn leader(&self) -> Option<u64> {
        self.led().map(|(id, _)| id)
    }

    /// Who votes, as the leader has it.
    pub(crate) fn voters(&self) -> Vec<u64> {
        self.led()
            .map(|(_, probe)| probe.voters)
            .unwrap_or_default()
    }

    /// Who belongs to the cluster, as the leader has it.
    pub(crate) fn members(&self) -> Vec<u64> {
        self.led()
            .map(|(_, probe)| probe.members)
            .unwrap_or_default()
    }

    /// Adds up what a store that is about to end, or the run is, has done with snapshots.
    pub(crate) fn tally(&mut self, store: &Store<W::Machine>) {
        let SnapshotBytes { received, kept, .. } = store.metrics().snapshot_bytes;
        self.snapshots.received += received;
        self.snapshots.kept += kept;
    }

    pub(crate) fn log(&mut self, line: std::fmt::Arguments<'_>) {
        self.trace.line(self.now_ms, line);
    }

    pub(crate) fn fail(&mut self, reason: String) {
        self.log(format_args!("FAILED {reason}"));
        self.failure.get_or_insert(reason);
    }
}

/// One machine: its disk outlives its crashes.
#[derive(Debug)]
pub(crate) struct Node<W: Workload> {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<SimClock>,
    /// What runs now, if anything.
    pub(crate) store: Option<Store<W::Machine>>,
    pub(crate) mailbox: Option<mpsc::Sender<NodeRequest<W>>>,
    /// Set by the store when the process would end.
    pub(crate) died: Arc<AtomicBool>,
    /// Is it to run at all? Spare nodes are not, at first.
    pub(crate) is_wanted: bool,
}

impl<W: Workload> Node<W> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            disk: SimDisk::new(seed),
            clock: Arc::default(),
            store: None,
            mailbox: None,
            died: Arc::default(),
            is_wanted: false,
        }
    }
}

/// A request to a node.
#[derive(Debug)]
pub(crate) enum NodeRequest<W: Workload> {
    Members(MemberChange, oneshot::Sender<Result<(), MembershipError>>),
    Snapshot(oneshot::Sender<Result<(), StoreError>>),
    Work(W::Request),
}

/// Everything that node `id` does until it crashes.
pub(crate) async fn run<W: Workload>(world: Shared<W>, id: u64) -> turmoil::Result {
    let begin = wait_for_turn(&world, id).await;
    let config = config(&world, id, begin);
    let store = match Store::<W::Machine>::open(config).await {
        Ok(store) => store,
        Err(error) => {
            does_not_start(&mut world.borrow_mut(), id, &error);
            return std::future::pending().await;
        }
    };
    let listener = net::listen().await?;
    let (mailbox, requests) = mpsc::channel(MAILBOX_MAX);
    {
        let mut world = world.borrow_mut();
        world.cluster.get_or_insert_with(|| store.cluster_id());
        world.log(format_args!("n{id} runs"));
        if let Some(node) = world.nodes.get_mut(&id) {
            node.store = Some(store.clone());
            node.mailbox = Some(mailbox);
        }
    }
    W::observe(&world, id, &store);
    tokio::task::spawn_local(notice_end(world.clone(), id, store.clone()));
    serve::<W>(store, listener, requests).await
}

/// The first node forms the cluster, the others join it when it is there and they are wanted.
async fn wait_for_turn<W: Workload>(world: &Shared<W>, id: u64) -> StartMode {
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);
    if id == 1 {
        return StartMode::Form;
    }
    loop {
        {
            let world = world.borrow();
            if let (Some(cluster), true) = (world.cluster, world.nodes[&id].is_wanted) {
                return StartMode::Join(cluster);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn config<W: Workload>(world: &Shared<W>, id: u64, begin: StartMode) -> StoreConfig {
    let world = world.borrow();
    let node = &world.nodes[&id];
    let died = node.died.clone();
    died.store(false, Ordering::Relaxed);
    let platform = node
        .disk
        .platform(move |_| died.store(true, Ordering::Relaxed));
    StoreConfig {
        begin,
        peer_address: net::host(id),
        transport: Arc::new(SimTransport),
        clock: node.clock.clone(),
        snapshot_every_entries: world.plan.snapshot_every_entries,
        keep_entries: world.plan.keep_entries,
        segment_bytes: world.plan.segment_bytes,
        snapshot_piece_bytes: world.plan.snapshot_piece_bytes,
        snapshot_bytes_per_second: Some(world.plan.snapshot_bytes_per_second),
        platform,
        ..StoreConfig::new("/data", id, "sim")
    }
}

fn does_not_start<W: Workload>(world: &mut World<W>, id: u64, error: &OpenError) {
    let died = world.nodes[&id].died.swap(true, Ordering::Relaxed);
    let text = Chain(error);
    world.log(format_args!("n{id} does not start: {text}"));
    if !died && !is_disk_error(error) {
        world.fail(format!("node {id} refused to start after a crash: {text}"));
    }
}

/// A store that stopped by itself ends its process; only a bad disk is a reason.
async fn notice_end<W: Workload>(world: Shared<W>, id: u64, store: Store<W::Machine>) {
    let reason = store.stopped().await.unwrap_or_default();
    let mut world = world.borrow_mut();
    world.log(format_args!("n{id} stopped: {reason}"));
    if !reason.contains("simulated disk") {
        world.fail(format!("node {id} stopped by itself: {reason}"));
    }
    world.nodes[&id].died.store(true, Ordering::Relaxed);
}

async fn serve<W: Workload>(
    store: Store<W::Machine>,
    listener: TcpListener,
    mut requests: mpsc::Receiver<NodeRequest<W>>,
) -> turmoil::Result {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            accepted = net::accept(&listener) => {
                let (from, channel) = accepted?;
                let store = store.clone();
                tasks.spawn(async move {
                    if let Err(error) = store.serve_peer(from, channel).await {
                        tracing::debug!(from, error = %error, "a channel ended");
                    }
                });
            }
            Some(request) = requests.recv() => {
                let store = store.clone();
                // Whoever asked may be gone.
                match request {
                    NodeRequest::Work(request) => {
                        tasks.spawn(W::answer(store, request));
                    }
                    NodeRequest::Members(change, to) => {
                        tasks.spawn(async move {
                            drop(to.send(store.change_members_here(&change).await));
                        });
                    }
                    NodeRequest::Snapshot(to) => {
                        tasks.spawn(async move { drop(to.send(store.snapshot().await)) });
                    }
                }
            }
        }
    }
}

/// Is a full or failing disk the cause?
fn is_disk_error(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.to_string().contains("simulated disk") {
            return true;
        }
        next = error.source();
    }
    false
}
