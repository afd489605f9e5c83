//! Snapshots: copies of the state engine, made of hard links, so that one costs what changed since
//! the last one and not the whole state.
//!
//! A snapshot is a directory `<term>-<index>` that holds `state/`, the copy, and `META`, how far
//! it has come. It is made under a temporary name and renamed when it is whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec;
use crate::disk::Disk;
use crate::engine::{EngineError, Progress, StateEngine};
use crate::platform::random_id;
use crate::raft::types::SnapshotMeta;

const META: &str = "META";
const STATE: &str = "state";
const TEMPORARY: &str = "tmp-";

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
pub(crate) struct Snapshots {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
}

impl Snapshots {
    /// Opens `dir` and removes snapshots that were not finished.
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, SnapshotError> {
        disk.create_dir(dir)
            .map_err(|e| io_error("create", dir, e))?;
        let snapshots = Self {
            disk,
            dir: dir.to_owned(),
        };
        for name in snapshots.names()? {
            if name.starts_with(TEMPORARY) {
                snapshots.remove(&name)?;
            }
        }
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

        let name = snapshot_name(&progress);
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
        Ok((meta(&progress), made))
    }

    /// Makes a complete snapshot from elsewhere on the same file system ours, before it is
    /// installed: after a crash in between, the start installs it again.
    pub(crate) fn adopt(&self, from: &SnapshotDir) -> Result<SnapshotDir, SnapshotError> {
        if from.0.parent() == Some(self.dir.as_path()) && !is_temporary(&from.0) {
            return Ok(from.clone());
        }
        let name = snapshot_name(&self.read_meta(&from.0)?);
        let ours = SnapshotDir(self.dir.join(&name));
        if !self.disk.exists(&ours.0) {
            self.name(&from.0, &ours.0)?;
        }
        self.remove_all_but(&name)?;
        Ok(ours)
    }

    /// The disk that they are on.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// A new directory for a snapshot that is on its way here; gone after a restart.
    pub(crate) fn new_temporary(&self) -> Result<PathBuf, SnapshotError> {
        let dir = self.dir.join(format!("{TEMPORARY}{}", random_id()));
        let state = dir.join(STATE);
        self.disk
            .create_dir(&state)
            .map_err(|e| io_error("create", &state, e))?;
        Ok(dir)
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

    fn write_meta(&self, dir: &Path, progress: &Progress) -> Result<(), SnapshotError> {
        let path = dir.join(META);
        let write = || -> std::io::Result<()> {
            let value = codec::encode(progress)?;
            let mut bytes = crc32fast::hash(&value).to_le_bytes().to_vec();
            bytes.extend_from_slice(&value);
            let file = self.disk.create(&path)?;
            file.write_at(&bytes, 0)?;
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

    fn read_meta(&self, dir: &Path) -> Result<Progress, SnapshotError> {
        let path = dir.join(META);
        let bytes = self.disk.read(&path);
        let bytes = bytes.map_err(|e| io_error("read", &path, e))?;
        let damaged = |reason: String| SnapshotError::Damaged {
            path: dir.to_owned(),
            reason,
        };
        let (crc, value) = bytes
            .split_first_chunk::<4>()
            .ok_or_else(|| damaged("META is cut".to_owned()))?;
        if crc32fast::hash(value).to_le_bytes() != *crc {
            return Err(damaged("the checksum of META does not match".to_owned()));
        }
        codec::decode(value).map_err(|e| damaged(e.to_string()))
    }
}

/// Sorts by term and index.
fn snapshot_name(progress: &Progress) -> String {
    let (term, index) = progress
        .last_applied
        .map_or((0, 0), |id| (id.committed_leader_id().term, id.index));
    format!("{term:020}-{index:020}")
}

fn is_temporary(dir: &Path) -> bool {
    dir.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

fn meta(progress: &Progress) -> SnapshotMeta {
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
