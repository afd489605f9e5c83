//! A state engine in memory: what was not flushed may be lost at a crash, newest first.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::disk::{SimDisk, lock};
use crate::codec;
use crate::disk::Disk;
use crate::engine::{EachRow, EngineError, Progress, StateEngine};
use crate::machine::Row;

/// The file of a copy.
const COPY: &str = "ROWS";

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rows of one engine, as they are and as a crash may leave them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    live: (Map, Progress),
    durable: (Map, Progress),
    unflushed: Vec<(Vec<Row>, Progress)>,
}

impl Rows {
    /// Some of the commits are left, none without those before it.
    pub(super) fn crash(&mut self, random: &mut u64) {
        let commits = self.unflushed.len() as u64 + 1;
        let left = (super::next(random) % commits) as usize;
        for (rows, progress) in self.unflushed.drain(..).take(left) {
            apply(&mut self.durable, &rows, &progress);
        }
        self.unflushed.clear();
        self.live = self.durable.clone();
    }

    fn flush(&mut self) {
        for (rows, progress) in self.unflushed.drain(..) {
            apply(&mut self.durable, &rows, &progress);
        }
    }
}

fn apply((map, at): &mut (Map, Progress), rows: &[Row], progress: &Progress) {
    for row in rows {
        match &row.value {
            Some(value) => map.insert(row.key.clone(), value.clone()),
            None => map.remove(&row.key),
        };
    }
    at.clone_from(progress);
}

#[derive(Debug)]
pub(super) struct SimEngine {
    disk: SimDisk,
    rows: Arc<Mutex<Rows>>,
}

impl SimEngine {
    pub(super) fn new(disk: SimDisk, rows: Arc<Mutex<Rows>>) -> Self {
        Self { disk, rows }
    }

    fn read_copy(&self, dir: &Path) -> Result<(Map, Progress), EngineError> {
        let path = dir.join(COPY);
        let bytes = self
            .disk
            .read(&path)
            .map_err(|e| io_error("read", &path, e))?;
        codec::decode(&bytes).map_err(|source| EngineError::Value {
            path,
            key: COPY.to_owned(),
            source,
        })
    }
}

impl StateEngine for SimEngine {
    fn progress(&self) -> Result<Progress, EngineError> {
        Ok(lock(&self.rows).live.1.clone())
    }

    fn rows(&self, each: &mut EachRow<'_>) -> Result<(), EngineError> {
        for (key, value) in &lock(&self.rows).live.0 {
            each(key, value).map_err(|source| EngineError::Value {
                path: "simulated".into(),
                key: key.escape_ascii().to_string(),
                source,
            })?;
        }
        Ok(())
    }

    fn commit(&self, rows: &[Row], progress: &Progress) -> Result<(), EngineError> {
        let mut all = lock(&self.rows);
        apply(&mut all.live, rows, progress);
        all.unflushed.push((rows.to_vec(), progress.clone()));
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        let synced = self.disk.sync_result();
        synced.map_err(|e| io_error("flush", Path::new("simulated"), e))?;
        lock(&self.rows).flush();
        Ok(())
    }

    fn checkpoint(&self, dir: &Path) -> Result<Progress, EngineError> {
        self.flush()?;
        let copy = lock(&self.rows).live.clone();
        let path = dir.join(COPY);
        let write = || -> std::io::Result<()> {
            self.disk.create_dir(dir)?;
            let file = self.disk.create(&path)?;
            file.write_at(&codec::encode(&copy)?, 0)?;
            file.sync()?;
            self.disk.sync_dir(dir)
        };
        write().map_err(|e| io_error("copy", &path, e))?;
        Ok(copy.1)
    }

    fn replace(&self, dir: &Path) -> Result<Progress, EngineError> {
        let copy = self.read_copy(dir)?;
        let progress = copy.1.clone();
        let mut rows = lock(&self.rows);
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
