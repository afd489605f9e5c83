//! The file system of the machine.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::{DiskFile, DiskLock, StoreDisk};
use crate::engine::rocks::RocksEngine;
use crate::engine::{EngineError, StateEngine};

/// [`StoreDisk`] on the file system of the machine.
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
        // The state holds sealed keys, which no other user may read.
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
        // A sync of a file does not make its name durable: that needs a sync of the directory.
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<DiskLock>> {
        let mut options = File::options();
        // Another user who could open it could hold the lock, and keep the node from starting.
        let file = options
            .mode(0o600)
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        // The kernel releases the lock with the process, so that a killed process leaves no stale
        // lock file behind.
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
        // fdatasync suffices: it writes the length of a file too, and leaves out only timestamps.
        self.sync_data()
    }
}
