//! A disk in memory. A crash loses writes that were not synced.
//!
//! The seed decides what a crash leaves of a write that was not synced: all of it, nothing, its
//! beginning, or some of its sectors. Of creations, renames and removals a prefix is left, as on a
//! file system with an ordered journal. The power can go between any two operations; later ones
//! fail.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::content::Content;
use super::engine::{Rows, SimEngine};
use super::file::FileHandle;
use crate::disk::{DiskFile, DiskLock, StoreDisk};
use crate::engine::{EngineError, StateEngine};
use crate::platform::{NodePlatform, StoreThreads};

/// Most changes of names that one crash can lose. Older ones count as synced.
const HISTORY_MAX: usize = 64;
/// Duration of a sync on a healthy disk, milliseconds.
const SYNC_MS: Range<u64> = 0..3;

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<DiskContent>>);

/// The disk behind all its clones.
#[derive(Debug)]
pub(super) struct DiskContent {
    pub(super) random: u64,
    names: BTreeMap<PathBuf, FileNode>,
    /// The names before each change since the last sync of a directory.
    history: Vec<BTreeMap<PathBuf, FileNode>>,
    /// The rows of state engines, by directory.
    rows: BTreeMap<PathBuf, Arc<Mutex<Rows>>>,
    sync_ms: Range<u64>,
    fail_sync: bool,
    full: bool,
    /// Operations left before the power goes. `None` means that it stays.
    power_left: Option<u64>,
}

/// The target of a name.
#[derive(Clone, Debug)]
enum FileNode {
    Dir,
    File(Arc<Mutex<Content>>),
}

impl SimDisk {
    /// An empty disk; `seed` decides what its crashes leave.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(DiskContent {
            random: seed,
            names: BTreeMap::new(),
            history: Vec::new(),
            rows: BTreeMap::new(),
            sync_ms: SYNC_MS,
            fail_sync: false,
            full: false,
            power_left: None,
        })))
    }

    /// The platform of a store on this disk, without threads of its own. `failed` is called where
    /// the process would end because the log cannot be written.
    pub fn platform(&self, failed: impl Fn(&io::Error) + Send + Sync + 'static) -> NodePlatform {
        NodePlatform {
            disk: Arc::new(self.clone()),
            threads: StoreThreads::Caller(Arc::new(failed)),
        }
    }

    /// Makes the disk healthy: syncs succeed and the power stays. Unsynced writes are still there,
    /// as after a process was killed.
    pub fn mend(&self) {
        let mut state = self.state();
        state.fail_sync = false;
        state.power_left = None;
    }

    /// The power goes after `operations` more operations that change something. Then all of them
    /// fail until [`lose_power`](Self::lose_power) decides what is left, or [`mend`](Self::mend) if
    /// only the process was killed there.
    pub fn lose_power_after(&self, operations: u64) {
        self.state().power_left = Some(operations);
    }

    /// `true` if the power has gone after [`lose_power_after`](Self::lose_power_after).
    pub fn is_dark(&self) -> bool {
        self.state().power_left == Some(0)
    }

    /// Decides what a loss of power leaves. Files that were open before must not be used any more.
    pub fn lose_power(&self) {
        self.mend();
        let mut state = self.state();
        // One more than the history has: the last version is the present one, of which nothing is
        // lost.
        let versions = state.history.len() as u64 + 1;
        let survivor = (super::next(&mut state.random) % versions) as usize;
        if let Some(names) = state.history.get(survivor) {
            state.names = names.clone();
        }
        state.history.clear();
        let DiskContent {
            random,
            names,
            rows,
            ..
        } = &mut *state;
        for node in names.values() {
            if let FileNode::File(content) = node {
                lock(content).crash(random);
            }
        }
        for rows in rows.values() {
            lock(rows).crash(random);
        }
    }

    /// The next sync fails.
    pub fn fail_next_sync(&self) {
        self.state().fail_sync = true;
    }

    /// Sets the duration of log syncs, milliseconds. `None` means a healthy disk.
    pub fn set_sync_ms(&self, range: Option<Range<u64>>) {
        self.state().sync_ms = range.unwrap_or(SYNC_MS);
    }

    /// Makes the disk full, or not full any more.
    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, DiskContent> {
        lock(&self.0)
    }

    /// Counts an operation that changes something; without power it fails.
    pub(super) fn operate(&self) -> io::Result<()> {
        match &mut self.state().power_left {
            Some(0) => Err(io::Error::other("the simulated disk has no power")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Changes names, so that a crash may undo it.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<PathBuf, FileNode>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.operate()?;
        let mut state = self.state();
        let before = state.names.clone();
        change(&mut state.names)?;
        if state.history.len() == HISTORY_MAX {
            state.history.remove(0);
        }
        state.history.push(before);
        Ok(())
    }

    fn file(&self, path: &Path) -> io::Result<Arc<Mutex<Content>>> {
        match self.state().names.get(path) {
            Some(FileNode::File(content)) => Ok(content.clone()),
            Some(FileNode::Dir) => Err(io::Error::new(io::ErrorKind::IsADirectory, "a directory")),
            None => Err(not_found()),
        }
    }

    fn handle(&self, content: Arc<Mutex<Content>>) -> Arc<dyn DiskFile> {
        Arc::new(FileHandle::new(self.clone(), content))
    }

    /// Fails if the disk is full.
    pub(super) fn room(&self) -> io::Result<()> {
        if self.state().full {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no space left on the simulated disk",
            ));
        }
        Ok(())
    }

    /// The error of a sync that was made to fail.
    pub(super) fn sync_result(&self) -> io::Result<()> {
        self.operate()?;
        if std::mem::take(&mut self.state().fail_sync) {
            return Err(io::Error::other("the simulated disk failed a sync"));
        }
        Ok(())
    }
}

impl StoreDisk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.room()?;
        let content = Arc::new(Mutex::new(Content::default()));
        let node = FileNode::File(content.clone());
        self.change(|names| {
            names.insert(path.to_owned(), node);
            Ok(())
        })?;
        Ok(self.handle(content))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.handle(self.file(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(lock(&*self.file(path)?).live.clone())
    }

    fn exists(&self, path: &Path) -> bool {
        self.state().names.contains_key(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let inside = state.names.keys().filter(|p| p.parent() == Some(dir));
        let names = inside.filter_map(|path| path.file_name());
        Ok(names.map(|n| n.to_string_lossy().into_owned()).collect())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|names| {
            for dir in dir.ancestors() {
                names.entry(dir.to_owned()).or_insert(FileNode::Dir);
            }
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|names| {
            // Names are whole paths: the content of a directory moves with it, path by path.
            let moved: Vec<PathBuf> = names
                .keys()
                .filter(|path| path.starts_with(from))
                .cloned()
                .collect();
            if moved.is_empty() {
                return Err(not_found());
            }
            for path in moved {
                let inside = path.strip_prefix(from).map_err(io::Error::other)?;
                let target = if inside.as_os_str().is_empty() {
                    to.to_owned()
                } else {
                    to.join(inside)
                };
                if let Some(node) = names.remove(&path) {
                    names.insert(target, node);
                }
            }
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change(|names| names.remove(path).map(drop).ok_or_else(not_found))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|names| {
            let before = names.len();
            names.retain(|path, _| !path.starts_with(dir));
            if names.len() == before {
                return Err(not_found());
            }
            Ok(())
        })
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        self.sync_result()?;
        // One journal orders the changes of all directories, so a sync of one makes all durable.
        self.state().history.clear();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<DiskLock>> {
        if !self.exists(path) {
            self.create(path)?;
        }
        Ok(Some(DiskLock::without_file()))
    }

    fn open_state(&self, dir: &Path) -> Result<Box<dyn StateEngine>, EngineError> {
        let rows = self.state().rows.entry(dir.to_owned()).or_default().clone();
        Ok(Box::new(SimEngine::new(self.clone(), rows)))
    }

    fn sync_time(&self) -> Duration {
        let mut state = self.state();
        let Range { start, end } = state.sync_ms;
        let drawn = super::next(&mut state.random) % (end - start).max(1);
        Duration::from_millis(start + drawn)
    }
}

fn not_found() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
