//! Snapshots: copies of the state engine, made of hard links, so that one costs what changed since
//! the last one and not the whole state.
//!
//! A snapshot is a directory `<term>-<index>` that holds `state/`, the copy, and `META`, how far
//! it has come. It is made under a temporary name and renamed when it is whole. There may be one,
//! and no more, that is on its way here (see `snapshot_partial`); it stays over a restart.

pub(crate) mod file;
pub(crate) mod partial;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use file::at;
use partial::{COPY, PartialHeader, PartialSnapshot, read_header};

use crate::codec;
use crate::disk::StoreDisk;
use crate::engine::{AppliedProgress, EngineError, StateEngine};
use crate::raft_types::{LogId, SnapshotMeta};
use crate::random::random_id;

const META: &str = "META";
const STATE: &str = "state";
const TEMPORARY: &str = "tmp-";
/// A temporary name, so that a build that does not know it removes it.
const PARTIAL: &str = "tmp-partial";

/// A snapshot on disk, as Raft hands it around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotDir(pub(crate) PathBuf);

impl SnapshotDir {
    /// The copy of the state engine.
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join(STATE)
    }
}

/// Making, finding or reading a snapshot failed.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The state engine could not copy itself.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file operation failed.
    #[error("{action} snapshot {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// `META` is damaged.
    #[error("snapshot {path} is damaged: {reason}. Remove that directory to start without it")]
    Damaged {
        /// Which snapshot.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl From<SnapshotError> for std::io::Error {
    fn from(error: SnapshotError) -> Self {
        Self::other(error)
    }
}

/// The directory that holds the snapshots.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotStore {
    disk: Arc<dyn StoreDisk>,
    dir: PathBuf,
    /// Held while the partial snapshot becomes another one, or is removed.
    partial: Arc<Mutex<()>>,
}

impl SnapshotStore {
    /// Opens `dir` and removes snapshots that were not finished.
    pub(crate) fn open(disk: Arc<dyn StoreDisk>, dir: &Path) -> Result<Self, SnapshotError> {
        disk.create_dir(dir)
            .map_err(|e| io_error("create", dir, e))?;
        let snapshots = Self {
            disk,
            dir: dir.to_owned(),
            partial: Arc::default(),
        };
        for name in snapshots.names()? {
            if name.starts_with(TEMPORARY) && name != PARTIAL {
                snapshots.remove(&name)?;
            }
        }
        // A process that was killed may not have made durable what it named.
        let synced = snapshots.disk.sync_dir(dir);
        synced.map_err(|e| io_error("sync", dir, e))?;
        Ok(snapshots)
    }

    /// Makes a snapshot of what `engine` holds now and removes older ones.
    pub(crate) fn make(
        &self,
        engine: &dyn StateEngine,
    ) -> Result<(SnapshotMeta, SnapshotDir), SnapshotError> {
        let temporary = SnapshotDir(self.dir.join(format!("{TEMPORARY}{}", random_id())));
        self.disk
            .create_dir(&temporary.0)
            .map_err(|e| io_error("create", &temporary.0, e))?;
        let progress = engine.checkpoint(&temporary.state())?;
        self.write_meta(&temporary.0, &progress)?;

        let name = snapshot_name(progress.last_applied);
        let made = SnapshotDir(self.dir.join(&name));
        if self.disk.exists(&made.0) {
            // The same state was copied before.
            self.disk
                .remove_dir(&temporary.0)
                .map_err(|e| io_error("remove", &temporary.0, e))?;
        } else {
            self.name(&temporary.0, &made.0)?;
        }
        self.remove_all_but(&name)?;
        self.remove_partial_behind(&progress)?;
        Ok((meta(&progress), made))
    }

    /// Makes a complete snapshot from elsewhere on the same file system ours, before it is
    /// installed: after a crash in between, the start installs it again.
    pub(crate) fn adopt(&self, from: &SnapshotDir) -> Result<SnapshotDir, SnapshotError> {
        if from.0.parent() == Some(self.dir.as_path()) && !is_temporary(&from.0) {
            return Ok(from.clone());
        }
        let name = snapshot_name(self.read_meta(&from.0)?.last_applied);
        let ours = SnapshotDir(self.dir.join(&name));
        if !self.disk.exists(&ours.0) {
            self.name(&from.0, &ours.0)?;
        }
        self.remove_all_but(&name)?;
        Ok(ours)
    }

    /// Begins to take in a snapshot; gives up any other one that was on its way.
    pub(crate) fn begin_partial(&self, header: PartialHeader) -> io::Result<PartialSnapshot> {
        let _held = self.lock_partial();
        self.remove_partial("the leader sends another one")?;
        PartialSnapshot::begin(self.disk.clone(), &self.dir.join(PARTIAL), header)
    }

    /// What an earlier attempt, or an earlier run, has taken in of the snapshot `header`.
    pub(crate) fn resume_partial(&self, header: &PartialHeader) -> Option<PartialSnapshot> {
        let dir = self.dir.join(PARTIAL);
        if read_header(&*self.disk, &dir).ok().as_ref() != Some(header) {
            return None;
        }
        let resumed = PartialSnapshot::resume(self.disk.clone(), &dir);
        resumed
            .inspect_err(|e| tracing::info!(error = %e, "a part of a snapshot cannot be used"))
            .ok()
    }

    /// Gives up what was taken in.
    pub(crate) fn drop_partial(&self, why: &str) -> io::Result<()> {
        let _held = self.lock_partial();
        self.remove_partial(why)
    }

    /// Where the copy of the partial snapshot is, to be installed once it is whole.
    pub(crate) fn received(&self) -> SnapshotDir {
        SnapshotDir(self.dir.join(PARTIAL).join(COPY))
    }

    /// Removes what is left of the partial snapshot after its installation.
    pub(crate) fn clear_partial(&self) -> io::Result<()> {
        if self.disk.exists(&self.received().0) {
            return self.drop_partial("it was not needed any more");
        }
        let _held = self.lock_partial();
        let dir = self.dir.join(PARTIAL);
        match self.disk.exists(&dir) {
            true => self.disk.remove_dir(&dir).map_err(|e| at(&dir, e)),
            false => Ok(()),
        }
    }

    /// Removes a partial snapshot that has nothing which `progress` does not have.
    pub(crate) fn remove_partial_behind(
        &self,
        progress: &AppliedProgress,
    ) -> Result<(), SnapshotError> {
        let _held = self.lock_partial();
        let dir = self.dir.join(PARTIAL);
        if !self.disk.exists(&dir) {
            return Ok(());
        }
        let why = match read_header(&*self.disk, &dir) {
            Ok(header) if header.name > snapshot_name(progress.last_applied) => return Ok(()),
            Ok(_) => "this node has come further without it",
            Err(_) => "it was hardly begun",
        };
        let removed = self.remove_partial(why);
        removed.map_err(|e| io_error("remove", &dir, e))
    }

    fn lock_partial(&self) -> MutexGuard<'_, ()> {
        self.partial.lock()
    }

    fn remove_partial(&self, why: &str) -> io::Result<()> {
        let dir = self.dir.join(PARTIAL);
        if !self.disk.exists(&dir) {
            return Ok(());
        }
        let name = read_header(&*self.disk, &dir).map(|header| header.name);
        let name = name.unwrap_or_default();
        tracing::info!(name, why, "drops a part of a snapshot");
        self.disk.remove_dir(&dir).map_err(|e| at(&dir, e))
    }

    /// How far the snapshot in `dir` has come.
    pub(crate) fn describe(&self, dir: &SnapshotDir) -> Result<SnapshotMeta, SnapshotError> {
        Ok(meta(&self.read_meta(&dir.0)?))
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Result<Option<(SnapshotMeta, SnapshotDir)>, SnapshotError> {
        let Some(name) = self
            .names()?
            .into_iter()
            .rfind(|n| !n.starts_with(TEMPORARY))
        else {
            return Ok(None);
        };
        let dir = SnapshotDir(self.dir.join(name));
        let progress = self.read_meta(&dir.0)?;
        Ok(Some((meta(&progress), dir)))
    }

    fn write_meta(&self, dir: &Path, progress: &AppliedProgress) -> Result<(), SnapshotError> {
        let path = dir.join(META);
        let write = || -> std::io::Result<()> {
            let file = self.disk.create(&path)?;
            file.write_at(&codec::encode_summed(progress)?, 0)?;
            file.sync()?;
            self.disk.sync_dir(dir)
        };
        write().map_err(|e| io_error("write", &path, e))
    }

    fn remove_all_but(&self, keep: &str) -> Result<(), SnapshotError> {
        for name in self.names()? {
            if name != keep && !name.starts_with(TEMPORARY) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), SnapshotError> {
        let path = self.dir.join(name);
        self.disk
            .remove_dir(&path)
            .map_err(|e| io_error("remove", &path, e))
    }

    /// Sorted: terms and indexes are written with leading zeros.
    fn names(&self) -> Result<Vec<String>, SnapshotError> {
        let names = self.disk.list(&self.dir);
        names.map_err(|e| io_error("list", &self.dir, e))
    }

    /// Durable when it returns.
    fn name(&self, from: &Path, to: &Path) -> Result<(), SnapshotError> {
        let named = self.disk.rename(from, to);
        named.map_err(|e| io_error("name", to, e))?;
        let synced = self.disk.sync_dir(&self.dir);
        synced.map_err(|e| io_error("sync", &self.dir, e))
    }

    fn read_meta(&self, dir: &Path) -> Result<AppliedProgress, SnapshotError> {
        let path = dir.join(META);
        let bytes = self.disk.read(&path);
        let bytes = bytes.map_err(|e| io_error("read", &path, e))?;
        codec::decode_summed(&bytes).map_err(|e| SnapshotError::Damaged {
            path: dir.to_owned(),
            reason: format!("{META}: {e}"),
        })
    }
}

/// Sorts by term and index.
pub(crate) fn snapshot_name(last: Option<LogId>) -> String {
    let (term, index) = last.map_or((0, 0), |id| (id.committed_leader_id().term, id.index));
    format!("{term:020}-{index:020}")
}

fn is_temporary(dir: &Path) -> bool {
    dir.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

fn meta(progress: &AppliedProgress) -> SnapshotMeta {
    SnapshotMeta {
        last_log_id: progress.last_applied,
        last_membership: progress.membership.clone(),
    }
}

fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> SnapshotError {
    SnapshotError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}
