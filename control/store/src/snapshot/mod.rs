//! Snapshots on disk: copies of the state engine, made of hard links. A snapshot costs the changes
//! since the last one, and not the whole state.
//!
//! A snapshot is a directory `<term>-<index>` that holds `state/`, the copy, and `META`, its
//! progress. It is made under a temporary name and renamed when it is complete. At most one
//! snapshot from the leader is partly received, see [`partial`]; it survives a restart.

mod chain;
mod error;
pub(crate) mod file;
pub(crate) mod partial;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

pub use error::SnapshotError;
use file::{SnapshotManifest, with_path};
use partial::{COPY, PartialSnapshot, read_header};

use crate::codec;
use crate::disk::StoreDisk;
use crate::engine::{AppliedProgress, StateEngine};
use crate::raft_types::{LogId, SnapshotMeta};
use crate::random::random_id;

/// File with the progress of a snapshot.
const META: &str = "META";
/// Directory with the copy of the state engine.
const STATE: &str = "state";
/// Prefix of the names of incomplete snapshots.
const TEMPORARY: &str = "tmp-";
/// Directory of the partly received snapshot. It has the temporary prefix so that an older build,
/// which does not know it, removes it at the start.
const PARTIAL: &str = "tmp-partial";

/// The directory of a snapshot, as openraft passes it between log, network and state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotDir(pub(crate) PathBuf);

impl SnapshotDir {
    /// Returns the directory of the copy of the state engine.
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join(STATE)
    }
}

/// The directory that holds the snapshots.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotStore {
    disk: Arc<dyn StoreDisk>,
    dir: PathBuf,
    /// Held while the partly received snapshot is replaced or removed, which both the receiver and
    /// the snapshot builder do.
    partial: Arc<Mutex<()>>,
}

impl SnapshotStore {
    /// Opens `dir` and removes incomplete snapshots, except the partly received one.
    ///
    /// # Errors
    /// When a file operation fails.
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
        // A process that was killed may have renamed a snapshot without a sync of the directory.
        // Raft purges its log up to the newest snapshot, so its name must be durable.
        let synced = snapshots.disk.sync_dir(dir);
        synced.map_err(|e| io_error("sync", dir, e))?;
        Ok(snapshots)
    }

    /// Makes a snapshot of the present state of `engine` and removes older snapshots.
    ///
    /// # Errors
    /// When the engine cannot be copied or a file operation fails. The older snapshots stay then.
    pub(crate) fn make(
        &self,
        engine: &dyn StateEngine,
    ) -> Result<(SnapshotMeta, SnapshotDir), SnapshotError> {
        // A fresh name: a build that failed may have left its directory behind.
        let temporary = SnapshotDir(self.dir.join(format!("{TEMPORARY}{}", random_id())));
        self.disk
            .create_dir(&temporary.0)
            .map_err(|e| io_error("create", &temporary.0, e))?;
        // The progress of the copy, not of the engine: entries are applied meanwhile.
        let progress = engine.checkpoint(&temporary.state())?;
        self.write_meta(&temporary.0, &progress)?;

        let name = snapshot_name(progress.last_applied);
        let made = SnapshotDir(self.dir.join(&name));
        if self.disk.exists(&made.0) {
            // No entry was applied since the last snapshot.
            self.disk
                .remove_dir(&temporary.0)
                .map_err(|e| io_error("remove", &temporary.0, e))?;
        } else {
            self.publish(&temporary.0, &made.0)?;
        }
        // After the new name is durable: at every moment one complete snapshot exists.
        self.remove_all_but(&name)?;
        // This node may have caught up from the log while the leader's snapshot was on its way.
        self.remove_partial_behind(&progress)?;
        Ok((snapshot_meta(&progress), made))
    }

    /// Moves a complete snapshot, received or from elsewhere on the file system, among the
    /// snapshots of this node. The caller installs it afterwards: after a crash in between, the
    /// start installs it again.
    pub(crate) fn adopt(&self, from: &SnapshotDir) -> Result<SnapshotDir, SnapshotError> {
        // At the start Raft installs the newest snapshot of this node itself.
        if from.0.parent() == Some(self.dir.as_path()) && !is_temporary(&from.0) {
            return Ok(from.clone());
        }
        let name = snapshot_name(self.read_meta(&from.0)?.last_applied);
        let ours = SnapshotDir(self.dir.join(&name));
        if !self.disk.exists(&ours.0) {
            self.publish(&from.0, &ours.0)?;
        }
        self.remove_all_but(&name)?;
        Ok(ours)
    }

    /// Begins to receive a snapshot; drops any other partly received one.
    pub(crate) fn begin_partial(&self, manifest: SnapshotManifest) -> io::Result<PartialSnapshot> {
        let _held = self.lock_partial();
        self.remove_partial("the leader sends another snapshot")?;
        PartialSnapshot::begin(self.disk.clone(), &self.dir.join(PARTIAL), manifest)
    }

    /// Returns the part of the snapshot `manifest` that an earlier attempt, perhaps of an earlier
    /// process, has received.
    pub(crate) fn resume_partial(&self, manifest: &SnapshotManifest) -> Option<PartialSnapshot> {
        let dir = self.dir.join(PARTIAL);
        if read_header(&*self.disk, &dir).ok().as_ref() != Some(manifest) {
            return None;
        }
        let resumed = PartialSnapshot::resume(self.disk.clone(), &dir);
        resumed
            .inspect_err(
                |e| tracing::info!(error = %e, "a partly received snapshot cannot be resumed"),
            )
            .ok()
    }

    /// Removes the partly received snapshot; `why` goes to the log.
    pub(crate) fn drop_partial(&self, why: &str) -> io::Result<()> {
        let _held = self.lock_partial();
        self.remove_partial(why)
    }

    /// Returns the directory of the received copy, which is installed once it is complete.
    pub(crate) fn received_dir(&self) -> SnapshotDir {
        SnapshotDir(self.dir.join(PARTIAL).join(COPY))
    }

    /// Removes the rest of the partly received snapshot after its installation.
    pub(crate) fn clear_partial(&self) -> io::Result<()> {
        // Installation moves the copy away. Raft may also decline it, and then it is still here.
        if self.disk.exists(&self.received_dir().0) {
            return self.drop_partial("it was not needed any more");
        }
        let _held = self.lock_partial();
        let dir = self.dir.join(PARTIAL);
        match self.disk.exists(&dir) {
            true => self.disk.remove_dir(&dir).map_err(|e| with_path(&dir, e)),
            false => Ok(()),
        }
    }

    /// Removes a partly received snapshot that is not newer than `progress`.
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
            Ok(manifest) if manifest.name > snapshot_name(progress.last_applied) => return Ok(()),
            Ok(_) => "this node has applied its entries without it",
            Err(_) => "its header is unreadable",
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
        let header = read_header(&*self.disk, &dir).ok();
        let name = header.map(|manifest| manifest.name);
        tracing::info!(name, why, "drops a partly received snapshot");
        self.disk.remove_dir(&dir).map_err(|e| with_path(&dir, e))
    }

    /// Reads last entry and membership of the snapshot in `dir`.
    pub(crate) fn describe(&self, dir: &SnapshotDir) -> Result<SnapshotMeta, SnapshotError> {
        Ok(snapshot_meta(&self.read_meta(&dir.0)?))
    }

    /// Returns the newest complete snapshot.
    pub(crate) fn newest(&self) -> Result<Option<(SnapshotMeta, SnapshotDir)>, SnapshotError> {
        let Some(name) = self
            .names()?
            .into_iter()
            .rfind(|name| !name.starts_with(TEMPORARY))
        else {
            return Ok(None);
        };
        let dir = SnapshotDir(self.dir.join(name));
        let progress = self.read_meta(&dir.0)?;
        Ok(Some((snapshot_meta(&progress), dir)))
    }

    /// Writes `META` into the snapshot that is being made; durable when it returns.
    fn write_meta(&self, dir: &Path, progress: &AppliedProgress) -> Result<(), SnapshotError> {
        let path = dir.join(META);
        let write = || -> std::io::Result<()> {
            let file = self.disk.create(&path)?;
            file.write_at(&codec::encode_summed(progress)?, 0)?;
            // Before the rename in `publish`: a snapshot with a name must not lack its META.
            file.sync()?;
            self.disk.sync_dir(dir)
        };
        write().map_err(|e| io_error("write", &path, e))
    }

    fn remove_all_but(&self, keep: &str) -> Result<(), SnapshotError> {
        for name in self.names()? {
            // Others with the prefix may be in use: the partly received one, and one being made.
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

    /// Returns the names in the directory, oldest snapshot first: terms and indexes have leading
    /// zeros.
    fn names(&self) -> Result<Vec<String>, SnapshotError> {
        let names = self.disk.list(&self.dir);
        names.map_err(|e| io_error("list", &self.dir, e))
    }

    /// Gives a complete snapshot its name; durable when it returns. The content must be durable
    /// before.
    fn publish(&self, from: &Path, to: &Path) -> Result<(), SnapshotError> {
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

/// Returns the name of the snapshot as of `last`. Names sort by term and index, as entries do.
pub(crate) fn snapshot_name(last: Option<LogId>) -> String {
    let (term, index) = last.map_or((0, 0), |id| (id.committed_leader_id().term, id.index));
    format!("{term:020}-{index:020}")
}

fn is_temporary(dir: &Path) -> bool {
    dir.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

fn snapshot_meta(progress: &AppliedProgress) -> SnapshotMeta {
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
