//! Opens a data directory and starts the node; closes both.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{BasicNode, Raft, ReadPolicy};
use tokio::runtime::Runtime;
use tokio::time::Instant;
use uuid::Uuid;

use crate::applied_state::AppliedState;
use crate::applier::Applier;
use crate::config::{READY_TIMEOUT, StartMode, StoreConfig};
use crate::disk::DiskLock;
use crate::error::OpenError;
use crate::identity::{self, io_error};
use crate::log_store::LogStore;
use crate::machine::StateMachine;
use crate::platform::{NodePlatform, handle};
use crate::raft::config::config as raft_config;
use crate::raft::dialer::{Dialer, SelfId};
use crate::raft::log::RaftLog;
use crate::raft::network::PeerFactory;
use crate::raft_types::TypeConfig;
use crate::snapshot::SnapshotStore;
use crate::snapshot::file::PIECE_BYTES;
use crate::snapshot_transfer::send::SnapshotSender;
use crate::snapshot_transfer::throttle::SendThrottle;
use crate::transfers::Transfers;
use crate::wal::{LogOwner, Wal};

pub(crate) type RaftNode<M> = Raft<TypeConfig, Applier<M>>;

/// Everything that [`open`] started.
pub(crate) struct RunningNode<M: StateMachine> {
    pub(crate) raft: Arc<RaftNode<M>>,
    pub(crate) shared: Arc<AppliedState<M>>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) dialer: Dialer,
    pub(crate) transfers: Arc<Transfers>,
    /// Raft's own runtime; `None` in a simulation.
    pub(crate) runtime: Option<Runtime>,
    pub(crate) lock: DiskLock,
}

/// The opened files of the data directory.
struct Files<M: StateMachine> {
    cluster: Uuid,
    shared: Arc<AppliedState<M>>,
    wal: Arc<Wal>,
    lock: DiskLock,
}

/// Opens the data directory and starts Raft.
///
/// # Errors
/// When the directory is in use, damaged or another node's, or Raft cannot start.
pub(crate) async fn open<M: StateMachine>(
    config: StoreConfig,
) -> Result<RunningNode<M>, OpenError> {
    let dir = config.dir.clone();
    let threads = config.platform.threads.clone();
    let failed = |action| move |e| io_error(action, &dir, e);
    let (config, files) = threads
        .blocking(move || {
            let files = read_files::<M>(&config);
            (config, files)
        })
        .await
        .map_err(failed.clone()("open"))?;
    let Files {
        cluster,
        shared,
        wal,
        lock,
    } = files?;
    let dialer = Dialer {
        this: SelfId {
            cluster,
            node: config.node_id,
        },
        transport: config.transport.clone(),
        refusals: Arc::default(),
    };
    let runtime = threads.runtime();
    let runtime = runtime.map_err(failed.clone()("start the threads for"))?;
    let transfers: Arc<Transfers> = Arc::default();
    let start = start(
        config,
        dialer.clone(),
        wal.clone(),
        shared.clone(),
        transfers.clone(),
    );
    let raft = handle(runtime.as_ref()).spawn(start).await;
    let raft = raft.map_err(|e| failed("start")(std::io::Error::other(e)))??;
    Ok(RunningNode {
        raft: Arc::new(raft),
        shared,
        wal,
        dialer,
        transfers,
        runtime,
        lock,
    })
}

/// Opens all files of the data directory; blocks on the disk.
fn read_files<M: StateMachine>(config: &StoreConfig) -> Result<Files<M>, OpenError> {
    let dir = &config.dir;
    let NodePlatform { disk, threads } = &config.platform;
    let parts = identity::PARTS.map(|part| dir.join(part));
    for part in [dir.clone()].into_iter().chain(parts) {
        disk.create_dir(&part)
            .map_err(|e| io_error("create", &part, e))?;
    }
    let lock = identity::lock(&**disk, dir)?;
    let identity = identity::claim(&**disk, dir, &config.cluster, config.node_id, config.begin)?;

    // A process that was killed may have created names without syncing their directory. A crash now
    // could lose them after later writes have relied on them.
    disk.sync_dir(dir).map_err(|e| io_error("sync", dir, e))?;

    let engine = disk.open_state(&dir.join("state"))?;
    let snapshots = SnapshotStore::open(disk.clone(), &dir.join("snapshots"))?;
    let shared = Arc::new(AppliedState::load(
        engine,
        snapshots,
        threads.clone(),
        config.watch_history,
    )?);
    shared.snapshots.remove_partial_behind(&shared.progress())?;
    let owner = LogOwner {
        cluster: identity.cluster_id,
        node: config.node_id,
    };
    let log = dir.join("log");
    let wal = Wal::open(&config.platform, &log, owner, config.segment_bytes)?;
    let wal = Arc::new(wal);
    // A log that lost acknowledged entries must not take part in elections: it could make a leader
    // that lacks them.
    check_log_covers_state(dir, &wal, &shared)?;
    Ok(Files {
        cluster: owner.cluster,
        shared,
        wal,
        lock,
    })
}

/// Starts Raft, forms the cluster if this is a new directory, and waits until a single node is
/// ready.
async fn start<M: StateMachine>(
    config: StoreConfig,
    dialer: Dialer,
    wal: Arc<Wal>,
    shared: Arc<AppliedState<M>>,
    transfers: Arc<Transfers>,
) -> Result<RaftNode<M>, OpenError> {
    let settings = raft_config(
        &config.cluster,
        config.snapshot_every_entries,
        config.keep_entries,
    )
    .map_err(|e| OpenError::Raft(e.to_string()))?;
    let network = PeerFactory {
        dialer,
        way: SnapshotSender {
            platform: config.platform.clone(),
            throttle: SendThrottle::new(config.snapshot_bytes_per_second),
            piece_bytes: config.snapshot_piece_bytes.clamp(1, PIECE_BYTES),
            transfers,
        },
    };
    let gate = shared.clone();
    let durable = wal.durable();
    let log = RaftLog::new(wal, Arc::new(move |index| gate.make_durable(index)));
    let raft = Raft::new(
        config.node_id,
        settings,
        network,
        log,
        Applier {
            shared,
            log: durable,
        },
    )
    .await
    .map_err(|e| OpenError::Raft(e.to_string()))?;

    let initialized = raft
        .is_initialized()
        .await
        .map_err(|e| OpenError::Raft(e.to_string()))?;
    // A node that joins must not be initialised: it would form a cluster of its own, with entries
    // that conflict with those of the cluster it is added to.
    let forms = !initialized && config.begin == StartMode::Form;
    if forms {
        let this = BasicNode::new(&config.peer_address);
        let members = [(config.node_id, this)];
        let members = std::collections::BTreeMap::from(members);
        raft.initialize(members)
            .await
            .map_err(|e| OpenError::Raft(e.to_string()))?;
    }
    // The only voter need not wait for the election timeout: nobody else can be elected.
    let voters: Vec<u64> = raft.voter_ids().collect();
    if forms || voters == [config.node_id] {
        raft.trigger()
            .elect(false)
            .await
            .map_err(|e| OpenError::Raft(e.to_string()))?;
        wait_ready(&raft).await?;
    }
    Ok(raft)
}

/// Waits until this node leads and has applied every acknowledged write.
async fn wait_ready<M: StateMachine>(raft: &RaftNode<M>) -> Result<(), OpenError> {
    let began = Instant::now();
    let mut metrics = raft.metrics();
    let ready = async {
        loop {
            // Leading is not enough: only a read index of the own term proves that the entries of
            // earlier terms are committed and applied.
            if raft.is_leader()
                && raft
                    .ensure_linearizable(ReadPolicy::ReadIndex)
                    .await
                    .is_ok()
            {
                return true;
            }
            let running = metrics.borrow_and_update().running_state.is_ok();
            if !running || metrics.changed().await.is_err() {
                return false;
            }
        }
    };
    let is_ready = tokio::time::timeout(READY_TIMEOUT, ready)
        .await
        .unwrap_or(false);
    if is_ready {
        return Ok(());
    }
    let state = raft.metrics().borrow_watched().to_string();
    Err(OpenError::NotReady {
        waited_ms: began.elapsed().as_millis(),
        state,
    })
}

/// Checks that the log contains the last entry of the state, or that a snapshot from another member
/// explains the gap.
fn check_log_covers_state<M: StateMachine>(
    dir: &Path,
    wal: &Wal,
    shared: &AppliedState<M>,
) -> Result<(), OpenError> {
    let Some(applied) = shared.progress().last_applied else {
        return Ok(());
    };
    let last = wal.last();
    if last.is_some_and(|last| last >= applied) {
        return Ok(());
    }
    let snapshot = shared
        .snapshots
        .newest()?
        .and_then(|(meta, _)| meta.last_log_id);
    // A learner that was killed just after it installed a snapshot has no entries yet, but its log
    // contains a vote. A log directory that was removed contains none.
    if snapshot == Some(applied) && wal.vote().is_some() {
        return Ok(());
    }
    Err(OpenError::LogBehindState {
        path: dir.to_owned(),
        applied: applied.index,
        last: last.map_or_else(|| "none".to_owned(), |last| last.index.to_string()),
    })
}

/// Stops everything that [`open`] started; blocks until the files are closed.
pub(crate) fn close<M: StateMachine>(
    shared: &AppliedState<M>,
    wal: &Wal,
    runtime: Option<Runtime>,
    lock: DiskLock,
) {
    /// Time limit for Raft's tasks to end. Beyond it they are left behind; the closed log and state
    /// refuse their calls.
    const THREADS_TIMEOUT: Duration = Duration::from_secs(10);
    // Order matters: no task may use the log or the state after they are closed, and the lock is
    // released last, so that the next process finds closed files.
    if let Some(runtime) = runtime {
        runtime.shutdown_timeout(THREADS_TIMEOUT);
    }
    wal.close();
    if let Err(error) = shared.engine.close() {
        tracing::warn!(error = %error, "the state was not flushed; the log has it");
    }
    drop(lock);
}
