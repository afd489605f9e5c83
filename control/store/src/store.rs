//! The handle of the store for the rest of the control plane.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use control_state::Tables;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use parking_lot::Mutex;
use proto_types::Timestamp;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::applied_state::AppliedState;
use crate::channel::Channel;
use crate::clock::Clock;
use crate::codec::Answerer;
use crate::config::StoreConfig;
use crate::disk::DiskLock;
use crate::error::{OpenError, StoreError};
use crate::forward::{self, FORWARDS_MAX, Forwarder, PendingForward};
use crate::machine::StateMachine;
use crate::metrics::Metrics;
use crate::open::{self, RaftNode, RunningNode};
use crate::platform::{StoreThreads, handle};
use crate::proposal::Proposal;
use crate::proposer::{PROPOSALS_MAX, Proposer};
use crate::raft::dialer::Dialer;
use crate::raft::inbound::Inbound;
use crate::rounds::Rounds;
use crate::snapshot_transfer::receive::SnapshotReceiver;
use crate::transfers::Transfers;
use crate::transport::Lane;
use crate::wal::Wal;
use crate::watch::{Compacted, Revision, Subscription};

/// The replicated store. Cheap to clone (`Arc`).
#[derive(Debug)]
pub struct Store<M: StateMachine = Tables>(pub(crate) Arc<StoreInner<M>>);

impl<M: StateMachine> Clone for Store<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The state shared by all handles of a store.
pub(crate) struct StoreInner<M: StateMachine> {
    node_id: u64,
    cluster: String,
    pub(crate) raft: Arc<RaftNode<M>>,
    pub(crate) shared: Arc<AppliedState<M>>,
    wal: Arc<Wal>,
    inbound: Inbound<M>,
    transfers: Arc<Transfers>,
    clock: Arc<dyn Clock>,
    pub(crate) proposals: mpsc::Sender<Proposal<M>>,
    pub(crate) forwards: mpsc::Sender<PendingForward>,
    /// Answers questions while this node leads.
    pub(crate) answerer: OnceLock<Answerer>,
    /// Rounds that end when this node has applied every acknowledged write.
    pub(crate) reads: Rounds<()>,
    /// Rounds that confirm the leadership of this node; their result is the read index.
    pub(crate) confirmations: Rounds<u64>,
    pub(crate) stop: CancellationToken,
    threads: StoreThreads,
    /// Runtime and directory lock; `None` once a shutdown has taken them.
    held: Mutex<Option<(Option<Runtime>, DiskLock)>>,
}

impl<M: StateMachine> std::fmt::Debug for StoreInner<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("node", &self.node_id)
            .finish_non_exhaustive()
    }
}

impl<M: StateMachine> Drop for StoreInner<M> {
    fn drop(&mut self) {
        self.stop.cancel();
        let held = self.held.get_mut().take();
        let Some((Some(runtime), lock)) = held else {
            return;
        };
        // A runtime cannot be dropped inside another runtime: that would block and panic. The lock
        // goes with it to a thread, which releases it after Raft's tasks have ended and the files
        // are closed: another process could open a directory that is still written otherwise.
        let (shared, wal) = (self.shared.clone(), self.wal.clone());
        std::thread::spawn(move || open::close(&shared, &wal, Some(runtime), lock));
    }
}

impl<M: StateMachine> Store<M> {
    /// Opens the data directory and starts the node. [`StoreConfig::begin`] says what a new
    /// directory becomes. A single node is ready when this returns: it leads and has applied its
    /// whole log.
    ///
    /// # Errors
    /// When the directory is in use, damaged or another node's; the message says what to do.
    pub async fn open(config: StoreConfig) -> Result<Self, OpenError> {
        let clock = config.clock.clone();
        let node_id = config.node_id;
        let cluster = config.cluster.clone();
        let threads = config.platform.threads.clone();
        let opened = open::open::<M>(config).await?;
        let RunningNode {
            raft,
            shared,
            wal,
            dialer,
            transfers,
            runtime,
            lock,
        } = opened;
        let receiver =
            SnapshotReceiver::new(shared.snapshots.clone(), threads.clone(), transfers.clone());
        let inbound = Inbound {
            this: dialer.this,
            raft: raft.clone(),
            snapshots: Arc::new(receiver),
        };
        let stop = CancellationToken::new();
        let on = handle(runtime.as_ref());
        let proposals = start_proposer(&on, &raft, &stop);
        let forwards = start_forwarder(&on, &raft, dialer, &stop);
        let (reads, readers) = Rounds::new();
        let (confirmations, confirmed) = Rounds::new();
        let held = Mutex::new(Some((runtime, lock)));
        let inner = StoreInner {
            node_id,
            cluster,
            raft,
            shared,
            wal,
            inbound,
            transfers,
            clock,
            proposals,
            forwards,
            answerer: OnceLock::new(),
            reads,
            confirmations,
            stop,
            threads,
            held,
        };
        let store = Self(Arc::new(inner));
        store.serve_reads(&on, readers, confirmed);
        Ok(store)
    }

    /// Checks that the node has not stopped.
    pub(crate) fn running(&self) -> Result<(), StoreError> {
        if self.0.stop.is_cancelled() {
            return Err(StoreError::ShutDown);
        }
        match &self.0.raft.metrics().borrow_watched().running_state {
            Ok(()) => Ok(()),
            Err(Fatal::Stopped) => Err(StoreError::ShutDown),
            Err(fatal) => Err(StoreError::Fatal(fatal.to_string())),
        }
    }

    /// Reads the state that this node has applied. It may lack writes acknowledged elsewhere.
    ///
    /// # Errors
    /// When the state machine panicked.
    pub fn read_local<T>(&self, read: impl FnOnce(&M) -> T) -> Result<T, StoreError> {
        self.read_local_versioned(|state, _| read(state))
    }

    /// As [`read_local`](Self::read_local), with the revision of the state.
    pub(crate) fn read_local_versioned<T>(
        &self,
        read: impl FnOnce(&M, Revision) -> T,
    ) -> Result<T, StoreError> {
        let state = self.0.shared.state.read();
        let state =
            state.map_err(|_| StoreError::Fatal("the state machine panicked".to_owned()))?;
        Ok(read(&state, Revision(state.revision())))
    }

    /// Serves a channel that another member opened, until it ends. The transport calls this; it has
    /// authenticated `from`.
    ///
    /// # Errors
    /// When the channel breaks, or the caller is turned away; then the source of the error is the
    /// [`PeerRefusal`](crate::PeerRefusal) that the caller got too.
    pub async fn serve_peer(&self, from: u64, mut channel: Channel) -> std::io::Result<()> {
        let lane = self.0.inbound.greet(from, &mut channel).await?;
        let served = async {
            match lane {
                Lane::Forward => forward::serve(channel, |what| self.carry_out_for(what)).await,
                lane => self.0.inbound.serve(from, lane, channel).await,
            }
        };
        tokio::select! {
            // `biased`, here as elsewhere: random polling order would make a simulation
            // irreproducible.
            biased;
            served = served => served,
            () = self.0.stop.cancelled() => Ok(()),
        }
    }

    /// Id of the cluster, made when it was formed. Data directories and members with another id are
    /// refused.
    pub fn cluster_id(&self) -> uuid::Uuid {
        self.0.inbound.this.cluster
    }

    /// Name of the cluster.
    pub fn cluster(&self) -> &str {
        &self.0.cluster
    }

    /// Subscribes to changes from now on. Subscribe first and read then: the other order misses the
    /// changes in between.
    pub fn watch(&self) -> Subscription<M::Change> {
        self.0.shared.hub.subscribe()
    }

    /// Subscribes to the changes after `from`, the revision of an earlier read or event.
    ///
    /// # Errors
    /// When the history does not reach back that far: read again, and watch from that revision.
    pub fn watch_from(&self, from: Revision) -> Result<Subscription<M::Change>, Compacted> {
        self.0.shared.hub.subscribe_after(from)
    }

    /// The time for a new command, by the clock of this node.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// This node's id.
    pub fn node_id(&self) -> u64 {
        self.0.node_id
    }

    /// The node that leads, as far as this one knows.
    pub fn leader(&self) -> Option<u64> {
        self.0.raft.metrics().borrow_watched().current_leader
    }

    /// `true` if this node leads as far as it knows. Only a linearizable [`read`](Self::read)
    /// proves it.
    pub fn is_leader(&self) -> bool {
        self.leader() == Some(self.0.node_id)
    }

    /// Waits until this node leads (`leads`) or does not lead (`!leads`). `false` if the store has
    /// stopped instead.
    pub async fn leadership(&self, leads: bool) -> bool {
        let mut metrics = self.0.raft.server_metrics();
        loop {
            let led = metrics.borrow_and_update().current_leader == Some(self.0.node_id);
            if led == leads {
                return true;
            }
            if metrics.changed().await.is_err() {
                return false;
            }
        }
    }

    /// The current term. It grows with each election, and so with each restart of a single node.
    /// Orders to hardware carry it as a fence.
    pub fn term(&self) -> u64 {
        self.0.raft.metrics().borrow_watched().current_term
    }

    /// State of the node, for operators and monitoring.
    pub fn metrics(&self) -> Metrics {
        let waiting = PROPOSALS_MAX - self.0.proposals.capacity();
        Metrics::of(
            &self.0.raft.metrics().borrow_watched(),
            waiting,
            self.0.wal.segments(),
            self.0.transfers.bytes(),
            self.0.wal.sync_times(),
        )
    }

    /// Makes a snapshot now; returns when it contains everything applied before the call.
    ///
    /// # Errors
    /// When the node has stopped, or the snapshot is not made within a minute.
    pub async fn snapshot(&self) -> Result<(), StoreError> {
        const TIMEOUT: Duration = Duration::from_secs(60);
        let fatal = |e: Fatal<_>| StoreError::Fatal(e.to_string());
        // Read before the trigger: a snapshot that is under way already may lack the newest entries,
        // and must not end the wait.
        let applied = self.0.shared.progress().last_applied;
        self.0.raft.trigger().snapshot().await.map_err(fatal)?;
        let wait = self.0.raft.wait(Some(TIMEOUT));
        wait.metrics(|metrics| metrics.snapshot >= applied, "snapshot")
            .await
            .map(|_| ())
            .map_err(|e| StoreError::Fatal(e.to_string()))
    }

    /// Waits until the node has stopped, by [`shutdown`](Self::shutdown) or after a fatal error,
    /// which is returned. The process should end then.
    pub async fn stopped(&self) -> Option<String> {
        let mut metrics = self.0.raft.metrics();
        loop {
            match &metrics.borrow_and_update().running_state {
                Ok(()) => {}
                Err(Fatal::Stopped) => return None,
                Err(fatal) => return Some(fatal.to_string()),
            }
            if metrics.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Stops the node: waiting requests are refused, entries in flight are finished, the state is
    /// flushed and the directory lock is released. A second call does nothing.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        // Taken by one call only: a second one returns at once.
        let held = self.0.held.lock().take();
        let Some((runtime, lock)) = held else { return };
        if let Err(error) = self.0.raft.shutdown().await {
            tracing::warn!(error = %error, "raft did not stop cleanly");
        }
        let (shared, wal) = (self.0.shared.clone(), self.0.wal.clone());
        let close = move || open::close(&shared, &wal, runtime, lock);
        if let Err(error) = self.0.threads.blocking(close).await {
            tracing::error!(error = %error, "closing the store panicked");
        }
    }
}

fn start_proposer<M: StateMachine>(
    on: &Handle,
    raft: &Arc<RaftNode<M>>,
    stop: &CancellationToken,
) -> mpsc::Sender<Proposal<M>> {
    let (to, proposals) = mpsc::channel(PROPOSALS_MAX);
    let proposer = Proposer {
        raft: raft.clone(),
        proposals,
        stop: stop.clone(),
    };
    on.spawn(proposer.run());
    to
}

fn start_forwarder<M: StateMachine>(
    on: &Handle,
    raft: &Arc<RaftNode<M>>,
    dialer: Dialer,
    stop: &CancellationToken,
) -> mpsc::Sender<PendingForward> {
    let (to, forwards) = mpsc::channel(FORWARDS_MAX);
    let forwarder = Forwarder {
        raft: raft.clone(),
        dialer,
        forwards,
        stop: stop.clone(),
    };
    on.spawn(forwarder.run());
    to
}

#[cfg(feature = "sim")]
impl<M: StateMachine> Store<M> {
    pub(crate) fn raft(&self) -> &RaftNode<M> {
        &self.0.raft
    }

    pub(crate) fn shared(&self) -> &AppliedState<M> {
        &self.0.shared
    }

    pub(crate) fn wal(&self) -> &Wal {
        &self.0.wal
    }

    pub(crate) fn transfers(&self) -> &Transfers {
        &self.0.transfers
    }
}
