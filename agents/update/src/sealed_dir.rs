use std::fs::{File, OpenOptions};
use std::path::Path;

use agents_kit::{KitError, StateDir};
use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::seal::StateSeal;

/// File of the lock.
const LOCK: &str = "lock";

/// A state directory whose files are sealed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SealedDir {
    dir: StateDir,
    seal: StateSeal,
}

impl SealedDir {
    /// Opens the directory; creates it if it is missing.
    ///
    /// # Errors
    /// Others may enter it, or it is another user's.
    pub fn open(path: &Path) -> Result<Self, KitError> {
        let dir = StateDir::open(path)?;
        let seal = StateSeal::open(&dir)?;
        Ok(Self { dir, seal })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory, for files without a seal.
    #[must_use]
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// Takes the lock of the one process that works with the directory, until the value is dropped.
    /// `None` if another process has it.
    ///
    /// # Errors
    /// The file of the lock cannot be opened or locked.
    pub fn lock(&self) -> Result<Option<Flock<File>>> {
        let path = self.dir.path().join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(lock)),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(error).context("cannot lock the state directory"),
        }
    }

    /// The content of a sealed file. `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is not what this agent wrote under that name.
    pub fn read_sealed(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(bytes) = self.dir.read_own(name)? else {
            return Ok(None);
        };
        let body = self.seal.open_sealed(name, &bytes);
        Ok(Some(body.with_context(|| name.to_owned())?.to_vec()))
    }

    /// Replaces a sealed file atomically. It is on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written; the old one is still there.
    pub fn write_sealed(&self, name: &str, body: &[u8]) -> Result<(), KitError> {
        self.dir.write(name, &self.seal.seal(name, body))
    }

    /// Removes a file. No error if it does not exist.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), KitError> {
        self.dir.remove(name)
    }
}
