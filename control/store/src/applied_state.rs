//! The applied state: in memory for readers, as rows in the state engine, and as changes for
//! watches.
//!
//! One entry is applied in this order: the state in memory, its rows and the progress in one batch
//! of the state engine, the changes to the watches, the answer to the proposer.

use std::collections::BTreeMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use openraft::EntryPayload;
use parking_lot::Mutex;

use crate::engine::{AppliedProgress, EngineError, StateEngine};
use crate::machine::{StateMachine, StateRow};
use crate::platform::StoreThreads;
use crate::raft_types::{Applied, CommandBatch, Entry, SnapshotMeta, StoredMembership};
use crate::snapshot::{SnapshotDir, SnapshotStore};
use crate::watch::{Hub, Revision};

/// The replies to the commands of one entry, in their order.
pub(crate) type Results<M> =
    Vec<Result<<M as StateMachine>::Reply, <M as StateMachine>::Rejection>>;

/// The effects of the commands of one entry.
struct BatchOutcome<M: StateMachine> {
    results: Results<M>,
    /// Changed objects of each command that changed something.
    changes: Vec<(Revision, Vec<M::Change>)>,
    /// One row for each changed object, as of the end of the entry.
    rows: Vec<StateRow>,
    /// Revision of the state after the entry.
    revision: u64,
}

/// The state of this node, shared between the applier, readers and the snapshot builder.
#[derive(Debug)]
pub(crate) struct AppliedState<M: StateMachine> {
    /// A lock of `std`, because its poisoning is needed here: a state machine that panicked has
    /// left a partial change, and no reader may see it.
    pub(crate) state: RwLock<M>,
    pub(crate) engine: Box<dyn StateEngine>,
    pub(crate) snapshots: SnapshotStore,
    pub(crate) threads: StoreThreads,
    pub(crate) hub: Hub<M::Change>,
    progress: Mutex<AppliedProgress>,
    /// Index below which the state on disk contains every entry; the log may be purged up to here.
    durable: AtomicU64,
}

impl<M: StateMachine> AppliedState<M> {
    /// Loads the state from `engine`. About `watch_history` changes are kept in memory, for watches
    /// that resume.
    pub(crate) fn load(
        engine: Box<dyn StateEngine>,
        snapshots: SnapshotStore,
        threads: StoreThreads,
        watch_history: usize,
    ) -> Result<Self, EngineError> {
        let progress = engine.progress()?;
        let machine = load_machine(&*engine, progress.revision)?;
        // An engine that was just opened holds what its files hold: all of it is durable.
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

    /// Returns the last applied entry, with membership and revision as of it.
    pub(crate) fn progress(&self) -> AppliedProgress {
        self.progress.lock().clone()
    }

    /// Ensures that the state on disk contains entry `index`. The log calls it before it purges the
    /// entry.
    ///
    /// # Errors
    /// When the flush fails, or the entry is not applied yet: the log must keep it then.
    pub(crate) fn make_durable(&self, index: u64) -> io::Result<()> {
        if index < self.durable.load(Ordering::Acquire) {
            return Ok(());
        }
        // Read before the flush: an entry that is applied during the flush may not be part of it.
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

    /// Makes a snapshot of the state as of now; blocks on the disk.
    pub(crate) fn make_snapshot(&self) -> io::Result<(SnapshotMeta, SnapshotDir)> {
        let (meta, dir) = self.snapshots.make(&*self.engine)?;
        // The engine has flushed for its checkpoint: what the snapshot contains is durable in the
        // engine too.
        let next = meta.last_log_id.map_or(0, |id| id.index + 1);
        self.durable.fetch_max(next, Ordering::AcqRel);
        Ok((meta, dir))
    }

    /// Applies one committed entry.
    ///
    /// # Errors
    /// Any error stops the node: a state that has skipped an entry differs from the other nodes.
    pub(crate) fn apply(&self, entry: Entry) -> io::Result<Applied> {
        let mut progress = self.progress();
        progress.last_applied = Some(entry.log_id);
        let mut applied = Applied::default();
        // Entries without commands advance the progress as well: else a restart would apply them
        // again and the log could not be purged up to them.
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
        // The leader as well decodes the bytes of the log, not the command that was proposed to it:
        // a lossy encoding would otherwise make the leader differ from its followers.
        let commands: Vec<M::Command> = batch
            .0
            .iter()
            .map(|bytes| M::read(bytes))
            .collect::<Result<_, _>>()?;
        // openraft does not notice a panic here, but an error stops it. The lock of the state stays
        // poisoned, so no reader sees the partial change.
        let run = AssertUnwindSafe(|| self.run(&commands));
        let outcome = std::panic::catch_unwind(run).map_err(|_| poisoned())??;
        progress.revision = outcome.revision;
        self.commit(&outcome.rows, progress)?;
        // After the commit, which may fail: no watch sees a change of an entry that this node has
        // not applied.
        if !outcome.changes.is_empty() {
            self.hub.publish(outcome.changes);
        }
        Ok(outcome.results)
    }

    /// Applies commands to the state in memory. Readers see all of them or none: the lock is held
    /// for the whole entry.
    fn run(&self, commands: &[M::Command]) -> io::Result<BatchOutcome<M>> {
        let mut state = self.state.write().map_err(|_| poisoned())?;
        let mut results = Vec::with_capacity(commands.len());
        let mut changes = Vec::new();
        let mut rows = BTreeMap::new();
        for command in commands {
            let outcome = state.apply(command);
            results.push(outcome.result);
            // The rows of an entry are one batch, so only the last state of an object is stored.
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

    /// Writes rows and progress to the engine as one batch.
    fn commit(&self, rows: &[StateRow], progress: AppliedProgress) -> io::Result<()> {
        // Rows and progress never part: after a crash the progress names exactly the entry from
        // which replay goes on, so that no entry is applied twice or left out.
        self.engine.commit(rows, &progress)?;
        *self.progress.lock() = progress;
        Ok(())
    }

    /// Replaces the state by the snapshot in `dir`; blocks on the disk.
    pub(crate) fn install(&self, dir: &SnapshotDir) -> io::Result<()> {
        // Adopted first, under its own name: a crash during the replacement leaves a complete
        // snapshot, which Raft installs again at the next start.
        let dir = self.snapshots.adopt(dir)?;
        let progress = self.engine.replace(&dir.state())?;
        #[cfg(feature = "sim")]
        let progress = self.with_stale_membership(progress)?;
        let machine = load_machine(&*self.engine, progress.revision)?;
        // After the engine, which may fail: readers never see a state that this node does not hold
        // on disk.
        *self.state.write().map_err(|_| poisoned())? = machine;
        self.durable
            .fetch_max(next_index(&progress), Ordering::AcqRel);
        let revision = Revision(progress.revision);
        *self.progress.lock() = progress;
        // Last: a watch that reads again after this sees the installed state.
        self.hub.replaced(revision);
        Ok(())
    }
}

#[cfg(feature = "sim")]
impl<M: StateMachine> AppliedState<M> {
    /// Injects a bug for the simulation: the installed state keeps the membership of before.
    fn with_stale_membership(&self, mut progress: AppliedProgress) -> io::Result<AppliedProgress> {
        if crate::sim::has(crate::sim::Bug::StaleMembershipAfterSnapshot) {
            progress.membership = self.progress().membership;
            self.engine.commit(&[], &progress)?;
        }
        Ok(progress)
    }
}

/// Builds the state in memory from the rows of `engine`.
fn load_machine<M: StateMachine>(
    engine: &dyn StateEngine,
    revision: u64,
) -> Result<M, EngineError> {
    let mut machine = M::default();
    engine.rows(&mut |key, value| machine.load(key, value))?;
    machine.set_revision(revision);
    Ok(machine)
}

/// Returns the index of the first entry that is not applied.
fn next_index(progress: &AppliedProgress) -> u64 {
    progress.last_applied.map_or(0, |id| id.index + 1)
}

fn poisoned() -> io::Error {
    io::Error::other("the state machine panicked; its state cannot be trusted")
}
