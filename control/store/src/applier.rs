//! Applies committed entries: to the state in memory, to its rows on disk, to the watchers.

use std::collections::BTreeMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use futures::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use openraft::{EntryPayload, OptionalSend};

use crate::engine::{AppliedProgress, EngineError, StateEngine};
use crate::machine::{StateMachine, StateRow};
use crate::platform::StoreThreads;
use crate::raft_types::{
    Applied, CommandBatch, Entry, LogId, SnapshotMeta, StoredMembership, TypeConfig,
};
use crate::snapshot::{SnapshotDir, SnapshotStore};
use crate::wal::durable::DurableIndex;
use crate::watch::{Hub, Revision};

/// What a command answered, in an entry's order.
pub(crate) type Results<M> =
    Vec<Result<<M as StateMachine>::Reply, <M as StateMachine>::Rejection>>;

/// What the commands of one entry did.
struct BatchOutcome<M: StateMachine> {
    results: Results<M>,
    /// What changed, command by command.
    changes: Vec<(Revision, Vec<M::Change>)>,
    rows: Vec<StateRow>,
    revision: u64,
}

/// The state, shared between the applier, readers and the snapshot builder.
#[derive(Debug)]
pub(crate) struct AppliedState<M: StateMachine> {
    pub(crate) state: RwLock<M>,
    pub(crate) engine: Box<dyn StateEngine>,
    pub(crate) snapshots: SnapshotStore,
    threads: StoreThreads,
    pub(crate) hub: Hub<M::Change>,
    progress: Mutex<AppliedProgress>,
    /// The log may be purged up to here: the state contains it durably.
    durable: AtomicU64,
}

impl<M: StateMachine> AppliedState<M> {
    /// Loads the state that `engine` holds.
    /// At most about `watch_history` changes are kept for those who watch.
    pub(crate) fn load(
        engine: Box<dyn StateEngine>,
        snapshots: SnapshotStore,
        threads: StoreThreads,
        watch_history: usize,
    ) -> Result<Self, EngineError> {
        let progress = engine.progress()?;
        let machine = load_machine(&*engine, progress.revision)?;
        let durable = AtomicU64::new(next_index(&progress));
        Ok(Self {
            state: RwLock::new(machine),
            engine,
            snapshots,
            threads,
            hub: Hub::new(Revision(progress.revision), watch_history),
            progress: Mutex::new(progress),
            durable,
        })
    }

    /// How far the state has come.
    pub(crate) fn progress(&self) -> AppliedProgress {
        self.progress
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Makes sure that the state contains entry `index` durably, before the log forgets it.
    pub(crate) fn make_durable(&self, index: u64) -> io::Result<()> {
        if index < self.durable.load(Ordering::Acquire) {
            return Ok(());
        }
        let applied = next_index(&self.progress());
        self.engine.flush()?;
        self.durable.fetch_max(applied, Ordering::AcqRel);
        if index < applied {
            Ok(())
        } else {
            let message = format!("the log must keep entry {index}: it is not in the state yet");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }

    /// Makes a snapshot; blocks on the disk.
    fn snapshot(&self) -> io::Result<(SnapshotMeta, SnapshotDir)> {
        let (meta, dir) = self.snapshots.make(&*self.engine)?;
        let next = meta.last_log_id.map_or(0, |id| id.index + 1);
        self.durable.fetch_max(next, Ordering::AcqRel);
        Ok((meta, dir))
    }

    fn apply(&self, entry: Entry) -> io::Result<Applied> {
        let mut progress = self.progress();
        progress.last_applied = Some(entry.log_id);
        let mut applied = Applied::default();
        match entry.payload {
            EntryPayload::Blank => self.commit(&[], progress)?,
            EntryPayload::Membership(membership) => {
                progress.membership = StoredMembership::new(Some(entry.log_id), membership);
                self.commit(&[], progress)?;
            }
            EntryPayload::Normal(batch) => {
                applied.results = Some(Box::new(self.apply_batch(&batch, progress)?));
            }
        }
        Ok(applied)
    }

    fn apply_batch(
        &self,
        batch: &CommandBatch,
        mut progress: AppliedProgress,
    ) -> io::Result<Results<M>> {
        // The leader, too, applies what it wrote and not what it held: nodes cannot differ.
        let commands: Vec<M::Command> = batch
            .0
            .iter()
            .map(|bytes| M::read(bytes))
            .collect::<Result<_, _>>()?;
        // openraft does not notice a panic here; an error stops it. The state's lock stays
        // poisoned, so nobody reads what the panic left.
        let run = AssertUnwindSafe(|| self.run(&commands));
        let step = std::panic::catch_unwind(run).map_err(|_| poisoned())??;
        progress.revision = step.revision;
        self.commit(&step.rows, progress)?;
        if !step.changes.is_empty() {
            self.hub.publish(step.changes);
        }
        Ok(step.results)
    }

    /// Applies commands to the state in memory.
    fn run(&self, commands: &[M::Command]) -> io::Result<BatchOutcome<M>> {
        let mut state = self.state.write().map_err(|_| poisoned())?;
        let mut results = Vec::with_capacity(commands.len());
        let mut changes = Vec::new();
        let mut rows = BTreeMap::new();
        for command in commands {
            let outcome = state.apply(command);
            results.push(outcome.result);
            // The last change of an object in an entry wins.
            for change in &outcome.changes {
                let row = state.row(change)?;
                rows.insert(row.key, row.value);
            }
            if !outcome.changes.is_empty() {
                changes.push((Revision(state.revision()), outcome.changes));
            }
        }
        let rows = rows
            .into_iter()
            .map(|(key, value)| StateRow { key, value })
            .collect();
        Ok(BatchOutcome {
            results,
            changes,
            rows,
            revision: state.revision(),
        })
    }

    fn commit(&self, rows: &[StateRow], progress: AppliedProgress) -> io::Result<()> {
        self.engine.commit(rows, &progress)?;
        *self
            .progress
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = progress;
        Ok(())
    }

    /// Becomes what `dir` holds; blocks on the disk.
    fn install(&self, dir: &SnapshotDir) -> io::Result<()> {
        let dir = self.snapshots.adopt(dir)?;
        let progress = self.engine.replace(&dir.state())?;
        #[cfg(feature = "sim")]
        let progress = self.with_stale_membership(progress)?;
        let machine = load_machine(&*self.engine, progress.revision)?;
        *self.state.write().map_err(|_| poisoned())? = machine;
        self.durable
            .fetch_max(next_index(&progress), Ordering::AcqRel);
        let revision = Revision(progress.revision);
        *self
            .progress
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = progress;
        self.hub.replaced(revision);
        Ok(())
    }
}

#[cfg(feature = "sim")]
impl<M: StateMachine> AppliedState<M> {
    /// Puts a bug back: what is installed keeps the membership of before.
    fn with_stale_membership(&self, mut progress: AppliedProgress) -> io::Result<AppliedProgress> {
        if crate::sim::has(crate::sim::Bug::StaleMembershipAfterSnapshot) {
            progress.membership = self.progress().membership;
            self.engine.commit(&[], &progress)?;
        }
        Ok(progress)
    }
}

fn load_machine<M: StateMachine>(
    engine: &dyn StateEngine,
    revision: u64,
) -> Result<M, EngineError> {
    let mut machine = M::default();
    engine.rows(&mut |key, value| machine.load(key, value))?;
    machine.set_revision(revision);
    Ok(machine)
}

fn next_index(progress: &AppliedProgress) -> u64 {
    progress.last_applied.map_or(0, |id| id.index + 1)
}

fn poisoned() -> io::Error {
    io::Error::other("the state machine panicked; its state cannot be trusted")
}

/// The shared state as openraft wants it.
#[derive(Debug)]
pub(crate) struct Applier<M: StateMachine> {
    pub(crate) shared: Arc<AppliedState<M>>,
    pub(crate) log: Arc<DurableIndex>,
}

impl<M: StateMachine> RaftStateMachine<TypeConfig> for Applier<M> {
    type SnapshotData = SnapshotDir;
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let progress = self.shared.progress();
        Ok((progress.last_applied, progress.membership))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            // A follower is told what a majority has before it has it itself on disk. The state must
            // not be ahead of the log: its files may be on disk at any moment.
            self.log.wait(entry.log_id.index).await;
            let applied = self.shared.apply(entry)?;
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        Self {
            shared: self.shared.clone(),
            log: self.log.clone(),
        }
    }

    async fn install_snapshot(
        &mut self,
        _meta: &SnapshotMeta,
        snapshot: SnapshotDir,
    ) -> Result<(), io::Error> {
        let shared = self.shared.clone();
        let install = move || shared.install(&snapshot);
        self.shared.threads.blocking(install).await?
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>>, io::Error> {
        let newest = self.shared.snapshots.newest()?;
        Ok(newest.map(|(meta, snapshot)| Snapshot { meta, snapshot }))
    }
}

impl<M: StateMachine> RaftSnapshotBuilder<TypeConfig> for Applier<M> {
    type SnapshotData = SnapshotDir;

    async fn build_snapshot(
        &mut self,
    ) -> Result<openraft::alias::SnapshotOf<TypeConfig, SnapshotDir>, io::Error> {
        let shared = self.shared.clone();
        let make = move || shared.snapshot();
        let (meta, snapshot) = self.shared.threads.blocking(make).await??;
        tracing::info!(
            index = meta.last_log_id.map_or(0, |id| id.index),
            path = %snapshot.0.display(),
            "made a snapshot"
        );
        Ok(Snapshot { meta, snapshot })
    }
}
