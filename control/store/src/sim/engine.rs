//! A state engine in memory. A crash may lose commits that were not flushed, the newest first.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::disk::{SimDisk, lock};
use crate::codec;
use crate::disk::StoreDisk;
use crate::engine::{AppliedProgress, EngineError, RowVisitor, StateEngine};
use crate::machine::StateRow;

/// Names of the files of a checkpoint.
const ROWS: &str = "ROWS";
const PROGRESS: &str = "PROGRESS";

/// Rows and progress that belong together.
#[derive(Clone, Debug, Default)]
struct EngineImage {
    map: BTreeMap<Vec<u8>, Vec<u8>>,
    progress: AppliedProgress,
}

impl EngineImage {
    /// Applies one commit.
    fn apply(&mut self, rows: &[StateRow], progress: &AppliedProgress) {
        for row in rows {
            match &row.value {
                Some(value) => self.map.insert(row.key.clone(), value.clone()),
                None => self.map.remove(&row.key),
            };
        }
        self.progress.clone_from(progress);
    }
}

/// The rows of one engine, as they are and as a crash may leave them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    live: EngineImage,
    durable: EngineImage,
    unflushed: Vec<(Vec<StateRow>, AppliedProgress)>,
}

impl Rows {
    /// Keeps some of the unflushed commits: a prefix, as a write-ahead log would.
    pub(super) fn crash(&mut self, random: &mut u64) {
        let commits = self.unflushed.len() as u64 + 1;
        // A prefix and not any subset: RocksDB flushes its memory as a whole, in the order of the
        // commits.
        let left = (super::next(random) % commits) as usize;
        for (rows, progress) in self.unflushed.drain(..).take(left) {
            self.durable.apply(&rows, &progress);
        }
        self.unflushed.clear();
        self.live = self.durable.clone();
    }

    fn flush(&mut self) {
        for (rows, progress) in self.unflushed.drain(..) {
            self.durable.apply(&rows, &progress);
        }
    }
}

/// The engine of one open store.
#[derive(Debug)]
pub(super) struct SimEngine {
    disk: SimDisk,
    rows: Arc<Mutex<Rows>>,
}

impl SimEngine {
    pub(super) fn new(disk: SimDisk, rows: Arc<Mutex<Rows>>) -> Self {
        Self { disk, rows }
    }

    fn read<T: DeserializeOwned>(&self, dir: &Path, name: &str) -> Result<T, EngineError> {
        let path = dir.join(name);
        let bytes = self.disk.read(&path);
        let bytes = bytes.map_err(|e| io_error("read", &path, e))?;
        codec::decode(&bytes).map_err(|source| EngineError::Value {
            path,
            key: name.to_owned(),
            source,
        })
    }

    fn write<T: Serialize>(&self, dir: &Path, name: &str, value: &T) -> Result<(), EngineError> {
        let path = dir.join(name);
        let write = || -> std::io::Result<()> {
            let file = self.disk.create(&path)?;
            file.write_at(&codec::encode(value)?, 0)?;
            file.sync()
        };
        write().map_err(|e| io_error("copy", &path, e))
    }

    /// Syncs the disk; fails if it has no room for the files of a flush.
    fn sync(&self, action: &'static str) -> Result<(), EngineError> {
        let synced = self.disk.room().and_then(|()| self.disk.sync_result());
        synced.map_err(|e| io_error(action, Path::new("simulated"), e))
    }
}

impl StateEngine for SimEngine {
    fn progress(&self) -> Result<AppliedProgress, EngineError> {
        Ok(lock(&self.rows).live.progress.clone())
    }

    fn rows(&self, each: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        for (key, value) in &lock(&self.rows).live.map {
            each(key, value).map_err(|source| EngineError::Value {
                path: "simulated".into(),
                key: key.escape_ascii().to_string(),
                source,
            })?;
        }
        Ok(())
    }

    fn commit(&self, rows: &[StateRow], progress: &AppliedProgress) -> Result<(), EngineError> {
        let written = self.disk.operate();
        written.map_err(|e| io_error("write", Path::new("simulated"), e))?;
        let mut all = lock(&self.rows);
        all.live.apply(rows, progress);
        all.unflushed.push((rows.to_vec(), progress.clone()));
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.sync("flush")?;
        lock(&self.rows).flush();
        Ok(())
    }

    fn checkpoint(&self, dir: &Path) -> Result<AppliedProgress, EngineError> {
        self.flush()?;
        let EngineImage { map, progress } = lock(&self.rows).live.clone();
        let copied = self.disk.create_dir(dir);
        copied.map_err(|e| io_error("create", dir, e))?;
        self.write(dir, ROWS, &map)?;
        self.write(dir, PROGRESS, &progress)?;
        let synced = self.disk.sync_dir(dir);
        synced.map_err(|e| io_error("sync", dir, e))?;
        Ok(progress)
    }

    fn replace(&self, dir: &Path) -> Result<AppliedProgress, EngineError> {
        let copy = EngineImage {
            map: self.read(dir, ROWS)?,
            progress: self.read(dir, PROGRESS)?,
        };
        let progress = copy.progress.clone();
        self.sync("replace")?;
        let mut rows = lock(&self.rows);
        // The replacement is durable when it returns: no crash may bring the commits before it
        // back.
        rows.unflushed.clear();
        rows.live = copy.clone();
        rows.durable = copy;
        Ok(progress)
    }

    fn close(&self) -> Result<(), EngineError> {
        self.flush()
    }
}

fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> EngineError {
    EngineError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}
