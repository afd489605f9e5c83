//! The way from a directory to a running store.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::async_runtime::WatchReceiver;
use openraft::{BasicNode, Raft, ReadPolicy};
use tokio::runtime::Runtime;

use crate::applier::{Applier, Shared};
use crate::config::{RAFT_THREADS, READY_TIMEOUT, StoreConfig};
use crate::engine::{Rocks, StateEngine};
use crate::error::OpenError;
use crate::identity::{self, DirLock, io_error};
use crate::machine::StateMachine;
use crate::raft::config::config as raft_config;
use crate::raft::log::{LogStore, RaftLog};
use crate::raft::network::{NoPeers, Peers};
use crate::raft::types::TypeConfig;
use crate::snapshot::Snapshots;
use crate::wal::{Owner, Wal};

pub(crate) type Node<M> = Raft<TypeConfig, Applier<M, Rocks>>;

/// Everything that runs.
pub(crate) struct Opened<M: StateMachine> {
    pub(crate) raft: Arc<Node<M>>,
    pub(crate) shared: Arc<Shared<M, Rocks>>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) runtime: Runtime,
    pub(crate) lock: DirLock,
}

/// Files in, running node out. Blocks on the disk.
pub(crate) fn open<M: StateMachine>(config: &StoreConfig) -> Result<Opened<M>, OpenError> {
    let dir = &config.dir;
    // The state holds sealed keys: nobody else needs to look at it.
    for part in [
        dir.clone(),
        dir.join("state"),
        dir.join("log"),
        dir.join("snapshots"),
    ] {
        make_private(&part).map_err(|e| io_error("create", &part, e))?;
    }
    let lock = identity::lock(dir)?;
    let identity = identity::claim(dir, &config.cluster, config.node_id)?;

    let engine = Rocks::open(&dir.join("state"))?;
    let snapshots = Snapshots::open(&dir.join("snapshots"))?;
    let shared = Arc::new(Shared::load(engine, snapshots)?);
    let owner = Owner {
        cluster: identity.cluster_id,
        node: config.node_id,
    };
    let wal = Arc::new(Wal::open(&dir.join("log"), owner, config.segment_bytes)?);
    check_log_covers_state(dir, &wal, &shared)?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RAFT_THREADS)
        .thread_name("raft")
        .enable_all()
        .build()
        .map_err(|e| io_error("start the threads for", dir, e))?;
    let raft = runtime.block_on(start(config, wal.clone(), shared.clone()))?;
    Ok(Opened {
        raft: Arc::new(raft),
        shared,
        wal,
        runtime,
        lock,
    })
}

async fn start<M: StateMachine>(
    config: &StoreConfig,
    wal: Arc<Wal>,
    shared: Arc<Shared<M, Rocks>>,
) -> Result<Node<M>, OpenError> {
    let settings = raft_config(
        &config.cluster,
        config.snapshot_every_entries,
        config.keep_entries,
    )
    .map_err(|e| OpenError::Raft(e.to_string()))?;
    let network = Peers(Arc::new(NoPeers));
    let gate = shared.clone();
    let log = RaftLog::new(wal, Arc::new(move |index| gate.make_durable(index)));
    let raft = Raft::new(config.node_id, settings, network, log, Applier(shared))
        .await
        .map_err(|e| OpenError::Raft(e.to_string()))?;

    let initialized = raft
        .is_initialized()
        .await
        .map_err(|e| OpenError::Raft(e.to_string()))?;
    if !initialized {
        let members = [(config.node_id, BasicNode::default())];
        let members = std::collections::BTreeMap::from(members);
        raft.initialize(members)
            .await
            .map_err(|e| OpenError::Raft(e.to_string()))?;
    }
    // No use in waiting for an election timeout when nobody else can stand.
    if raft.voter_ids().all(|voter| voter == config.node_id) {
        raft.trigger()
            .elect(false)
            .await
            .map_err(|e| OpenError::Raft(e.to_string()))?;
        wait_ready(&raft).await?;
    }
    Ok(raft)
}

/// Ready means: this node leads and has applied all that was ever acknowledged.
async fn wait_ready<M: StateMachine>(raft: &Node<M>) -> Result<(), OpenError> {
    let began = Instant::now();
    let mut metrics = raft.metrics();
    let ready = async {
        loop {
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

/// The state never runs ahead of the log, except just after a copy from another member.
fn check_log_covers_state<M: StateMachine>(
    dir: &Path,
    wal: &Wal,
    shared: &Shared<M, Rocks>,
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
    if snapshot == Some(applied) && last.is_some() {
        return Ok(());
    }
    Err(OpenError::LogBehindState {
        path: dir.to_owned(),
        applied: applied.index,
        last: last.map_or_else(|| "none".to_owned(), |last| last.index.to_string()),
    })
}

fn make_private(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// Ends everything that [`open`] began. Blocks until the files are free.
pub(crate) fn close<M: StateMachine>(
    shared: &Shared<M, Rocks>,
    wal: &Wal,
    runtime: Runtime,
    lock: DirLock,
) {
    const THREADS_TIMEOUT: Duration = Duration::from_secs(10);
    runtime.shutdown_timeout(THREADS_TIMEOUT);
    wal.close();
    if let Err(error) = shared.engine.close() {
        tracing::warn!(error = %error, "the state was not flushed; the log has it");
    }
    drop(lock);
}
