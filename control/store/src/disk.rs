//! The seam between the store and the files it keeps.
//!
//! Everything that must survive a crash goes through [`StoreDisk`]: the log, the snapshots, the file
//! that says whose directory it is, and the state engine's files. There is the machine's disk,
//! and a simulated one that loses what was not synced.

use std::fmt::Debug;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::Arc;

use crate::engine::rocks::RocksEngine;
use crate::engine::{EngineError, StateEngine};

/// Files by path. What a call changed is durable after a sync, and perhaps before.
pub(crate) trait StoreDisk: Debug + Send + Sync + 'static {
    /// Makes an empty file for reading and writing; one that is there is emptied.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file that is there for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// The whole content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Is there a file or directory of this name?
    fn exists(&self, path: &Path) -> bool;
    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes a directory and those above it, for this user only.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Gives a file or directory another name on the same disk.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all that is in it.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes a lock on the file `path` for this process; `None` when another one has it.
    fn lock(&self, path: &Path) -> io::Result<Option<DiskLock>>;
    /// Opens the state engine whose files are in `dir`.
    fn open_state(&self, dir: &Path) -> Result<Box<dyn StateEngine>, EngineError>;
    /// How long the next sync of the log takes, in virtual time.
    #[cfg(feature = "sim")]
    fn sync_time(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// An open file. Its clones and other handles of the same file see the same bytes.
pub(crate) trait DiskFile: Debug + Send + Sync {
    /// How many bytes it has.
    fn bytes(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on; a file that ends earlier is an error.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the content durable. After an error the content is unknown: do not try again.
    fn sync(&self) -> io::Result<()>;
}

/// A lock that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct DiskLock(
    #[expect(dead_code, reason = "the lock lives as long as the file")] Option<File>,
);

impl DiskLock {
    /// A lock on nothing, for a disk that only one process can see.
    #[cfg(feature = "sim")]
    pub(crate) fn alone() -> Self {
        Self(None)
    }
}

/// The machine's disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RealDisk;

impl StoreDisk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Arc::new(options.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::options().read(true).write(true).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<DiskLock>> {
        let mut options = File::options();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(DiskLock(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn open_state(&self, dir: &Path) -> Result<Box<dyn StateEngine>, EngineError> {
        Ok(Box::new(RocksEngine::open(dir)?))
    }
}

impl DiskFile for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
