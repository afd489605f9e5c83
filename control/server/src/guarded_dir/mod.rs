//! The data directory, while root works in it for the user that the service runs as.
//!
//! The store opens its files by path. A user who can write to the data directory, or can replace a
//! directory above it, could put a link in root's way, and root would write to a file elsewhere, or give
//! it away. So root works only below directories that nobody else can write to (`way`), and takes the
//! directories of the service's user for that time (`tree`). Each step goes through a descriptor of the
//! directory and follows no link, so that nothing can be exchanged between a check and its use.
//!
//! A caller who is not root has nothing to give away: for that caller only `check` does anything.

mod tree;
mod way;

#[cfg(test)]
mod tests;

use std::fs::{File, Metadata, TryLockError};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::{Gid, Uid, fchown, geteuid};

/// Flags that open a directory itself, never the target of a link.
const DIRECTORY: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// Flags that open a file itself. Not blocking: the open of a FIFO would wait for a writer.
const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
/// The lock file of the store.
const LOCK: &str = "LOCK";

/// The user that gets the files. Only root can give files away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileOwner {
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
}

impl FileOwner {
    /// `true` if the permission bits of a file let this user read it. Further groups of the user are
    /// not looked at.
    pub(crate) fn can_read(self, file: &Metadata) -> bool {
        let read = if file.uid() == self.uid.as_raw() {
            0o400
        } else if file.gid() == self.gid.as_raw() {
            0o040
        } else {
            0o004
        };
        file.permissions().mode() & read != 0
    }

    fn is_root(self) -> bool {
        self.uid.is_root()
    }
}

/// A data directory that is root's until it is given to its owner.
#[derive(Debug)]
pub(crate) struct GuardedDir {
    path: PathBuf,
    /// The directory and its owner. `None` means that there is nothing to give away.
    held: Option<(OwnedFd, FileOwner)>,
}

impl GuardedDir {
    /// Takes the directory from its owner, and makes it first unless it exists. `None` means that a
    /// process has locked it: that one has its files already.
    ///
    /// # Errors
    /// Another user could exchange what is in it; see [`check`].
    pub(crate) fn take(path: &Path, owner: Option<FileOwner>) -> Result<Option<Self>> {
        // Before anything is made: a refusal leaves no directory behind.
        check(path, owner)?;
        let mut guarded = Self {
            path: path.to_owned(),
            held: None,
        };
        let owner = owner.filter(|owner| geteuid().is_root() && !owner.is_root());
        let Some(owner) = owner else {
            return Ok(Some(guarded));
        };
        let dir = way::open(path, true)?;
        let dir = dir.with_context(|| format!("data_dir: cannot make {}", path.display()))?;
        check_own(&stat_of(&dir, path)?, path, Some(owner))?;
        if is_locked(&dir, path)? {
            return Ok(None);
        }
        tree::take(&dir, path, owner)?;
        guarded.held = Some((dir, owner));
        Ok(Some(guarded))
    }

    /// Gives the directory to its owner, with everything in it that is root's.
    ///
    /// # Errors
    /// An entry cannot be read or given away.
    pub(crate) fn give(self) -> Result<()> {
        match &self.held {
            Some((dir, owner)) => tree::give(dir, &self.path, *owner),
            None => Ok(()),
        }
    }
}

/// Checks that root can work in the directory for `owner`. Makes nothing.
///
/// # Errors
/// Another user can write to it or to a directory above it, it belongs to another user, or its path has
/// a link. A caller who is not root is refused only a directory that everybody can write to.
pub(crate) fn check(path: &Path, owner: Option<FileOwner>) -> Result<()> {
    if !geteuid().is_root() {
        let found = std::fs::metadata(path);
        return match found.is_ok_and(|found| found.permissions().mode() & 0o002 != 0) {
            true => bail!(open_to(path, "everybody")),
            false => Ok(()),
        };
    }
    match way::open(path, false)? {
        Some(dir) => check_own(&stat_of(&dir, path)?, path, owner),
        None => Ok(()),
    }
}

/// The user that an existing directory belongs to. `None` means root, or that the caller is not root and
/// has nothing to give away.
///
/// # Errors
/// See [`check`].
pub(crate) fn owner_of(path: &Path) -> Result<Option<FileOwner>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let Some(dir) = way::open(path, false)? else {
        return Ok(None);
    };
    let stat = stat_of(&dir, path)?;
    let owner = FileOwner {
        uid: Uid::from_raw(stat.st_uid),
        gid: Gid::from_raw(stat.st_gid),
    };
    Ok(Some(owner).filter(|owner| !owner.is_root()))
}

/// Refuses root as the user that a node runs as, in a directory of another user.
///
/// # Errors
/// The directory belongs to another user.
pub(crate) fn check_runner(path: &Path) -> Result<()> {
    let owner = std::fs::metadata(path).map_or(0, |found| found.uid());
    if owner == 0 || !geteuid().is_root() {
        return Ok(());
    }
    bail!(
        "data_dir: {} belongs to user {owner}, and files that root makes in it would keep that user's \
         service from starting; start the service (systemctl start metalmeshd), or run this as that \
         user (runuser -u USER -- metalmeshd ...)",
        path.display()
    )
}

/// Gives a file of root that is outside the data directory to its owner. A file that does not exist, or
/// that is another user's, stays as it is.
///
/// # Errors
/// The file is a link or has a second name, or its directory is one that another user can write to.
pub(crate) fn give_file(path: &Path, owner: FileOwner) -> Result<()> {
    let named = || format!("cannot give {} to the service's user", path.display());
    let path = std::path::absolute(path).with_context(named)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("{}: it is no file", named());
    };
    let Some(dir) = way::open(parent, false)? else {
        return Ok(());
    };
    check_own(&stat_of(&dir, parent)?, parent, Some(owner))?;
    let file = match openat(&dir, name, FILE, Mode::empty()) {
        Err(Errno::ENOENT) => return Ok(()),
        opened => opened.with_context(named)?,
    };
    let stat = stat_of(&file, &path)?;
    if !Uid::from_raw(stat.st_uid).is_root() {
        return Ok(());
    }
    if !tree::is_file(&stat) || stat.st_nlink > 1 {
        bail!("{}: it is no regular file with one name", named());
    }
    fchown(&file, Some(owner.uid), Some(owner.gid)).with_context(named)
}

/// Checks the data directory itself.
fn check_own(stat: &FileStat, path: &Path, owner: Option<FileOwner>) -> Result<()> {
    let uid = Uid::from_raw(stat.st_uid);
    if !uid.is_root() && owner.is_none_or(|owner| owner.uid != uid) {
        bail!(
            "data_dir: {} belongs to user {}, who could have root write elsewhere; run this as that \
             user (runuser -u USER -- metalmeshd ...), or name another directory",
            path.display(),
            uid
        );
    }
    match way::other_writers(stat) {
        Some(others) => bail!(open_to(path, &others)),
        None => Ok(()),
    }
}

fn open_to(path: &Path, others: &str) -> String {
    format!(
        "data_dir: {others} can write to {}, and could exchange its files; close it (chmod go-w), look \
         at what is in it, and try again",
        path.display()
    )
}

/// `true` if a process has locked the directory.
fn is_locked(dir: &OwnedFd, path: &Path) -> Result<bool> {
    let named = || format!("data_dir: cannot lock {}", path.join(LOCK).display());
    let lock = match openat(dir, LOCK, FILE, Mode::empty()) {
        Err(Errno::ENOENT) => return Ok(false),
        opened => opened.with_context(named)?,
    };
    // Let go at once: the store takes the lock for itself.
    match File::from(lock).try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error).with_context(named),
    }
}

fn stat_of(file: &OwnedFd, path: &Path) -> Result<FileStat> {
    fstat(file).with_context(|| format!("cannot inspect {}", path.display()))
}
