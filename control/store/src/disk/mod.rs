//! The interface between the store and its files.
//!
//! Everything that must survive a crash goes through [`StoreDisk`]: the log, the snapshots, the
//! identity of the data directory, and the files of the state engine. There are two
//! implementations: the file system of the machine, and a simulated disk that loses unsynced
//! writes.

mod real;

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{EngineError, StateEngine};

pub(crate) use real::RealDisk;

/// Files by path. A change is durable after a sync, and may be durable before.
pub(crate) trait StoreDisk: Debug + Send + Sync + 'static {
    /// Creates an empty file for reading and writing; an existing file is truncated.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Reads the whole content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Returns `true` if there is a file or directory of this name.
    fn exists(&self, path: &Path) -> bool;
    /// Returns the names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Creates a directory and its missing parents, with mode 0700.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Renames a file or directory on the same file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with its content.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks the file `path` for this process; `None` if another process holds the lock.
    fn lock(&self, path: &Path) -> io::Result<Option<DiskLock>>;
    /// Opens the state engine in `dir`. Here, because a simulated disk has an engine of its own.
    fn open_state(&self, dir: &Path) -> Result<Box<dyn StateEngine>, EngineError>;
    /// Returns the virtual time that the next sync of the log takes.
    #[cfg(feature = "sim")]
    fn sync_time(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// An open file. All handles of one file see the same bytes.
pub(crate) trait DiskFile: Debug + Send + Sync {
    /// Returns the length of the file.
    fn bytes(&self) -> io::Result<u64>;
    /// Fills `buffer` with the bytes from `offset` on; a shorter file is an error.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the content durable. After an error the durable content is unknown, and a retry may
    /// report success wrongly: the caller must not use the file any more.
    fn sync(&self) -> io::Result<()>;
}

/// A lock of a file, released on drop.
#[derive(Debug)]
pub(crate) struct DiskLock(
    #[expect(dead_code, reason = "the lock lives as long as the file")] Option<File>,
);

impl DiskLock {
    /// Returns a lock without a file, for a disk that only one process can see.
    #[cfg(feature = "sim")]
    pub(crate) fn without_file() -> Self {
        Self(None)
    }
}
