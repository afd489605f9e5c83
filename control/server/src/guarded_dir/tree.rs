//! The contents of the data directory: taken from the user of the service, and given to it.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use nix::dir::Dir;
use nix::fcntl::{AtFlags, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstatat};
use nix::unistd::{Uid, fchown};

use super::way::other_writers;
use super::{DIRECTORY, FILE, FileOwner, stat_of};

/// Deepest directory below the data directory. The store's are two levels deep.
const DEPTH_MAX: usize = 32;
const ROOT: Uid = Uid::from_raw(0);
/// Names of the directories that the store has in the data directory, and root works in.
const STORES: [&str; 3] = ["log", "snapshots", "state"];

/// The treatment of an entry of a directory that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryVerdict {
    /// A directory that has to be root's too.
    Enter,
    /// It stays as it is.
    Stay,
    /// Root could be led elsewhere by it.
    Refuse,
}

/// Makes the directories of the owner root's, so that the owner can put nothing into them.
///
/// # Errors
/// There is something that leads elsewhere. What was taken before has been given back.
pub(super) fn take(dir: &OwnedFd, path: &Path, owner: FileOwner) -> Result<()> {
    let mut taken = Vec::new();
    let outcome = take_all(dir, path, owner, &mut taken);
    if outcome.is_err() {
        for dir in taken {
            if let Err(error) = fchown(&dir, Some(owner.uid), None) {
                tracing::error!(error = %error, "a directory was not given back to its user");
            }
        }
    }
    outcome
}

fn take_all(dir: &OwnedFd, path: &Path, owner: FileOwner, taken: &mut Vec<OwnedFd>) -> Result<()> {
    let top = dir.try_clone().with_context(|| cannot_take(path))?;
    let data_dir = path;
    let mut waiting: Vec<(OwnedFd, PathBuf)> = vec![(top, path.to_owned())];
    while let Some((dir, path)) = waiting.pop() {
        let stat = stat_of(&dir, &path)?;
        let was_owners = stat.st_uid == owner.uid.as_raw();
        let was_open = was_owners || other_writers(&stat).is_some();
        if was_owners {
            taken.push(dir.try_clone().with_context(|| cannot_take(&path))?);
            fchown(&dir, Some(ROOT), None).with_context(|| cannot_take(&path))?;
        }
        if was_open {
            let closed = Mode::from_bits_truncate(stat.st_mode & 0o7755);
            fchmod(&dir, closed).with_context(|| cannot_take(&path))?;
        }
        // Only now: before, its user could still have changed what is in it.
        for name in names(&dir).with_context(|| cannot_take(&path))? {
            let entry = path.join(&name);
            let found = look_at(&dir, &name).with_context(|| cannot_take(&entry))?;
            // An agent's may be beside the store's, but not in their place.
            let is_beside = path == data_dir && STORES.iter().all(|stores| name != *stores);
            match judge(&found, owner, was_open, is_beside) {
                EntryVerdict::Enter => {
                    let below = openat(&dir, name.as_os_str(), DIRECTORY, Mode::empty());
                    waiting.push((below.with_context(|| cannot_take(&entry))?, entry));
                }
                EntryVerdict::Stay => {}
                EntryVerdict::Refuse => bail!(
                    "data_dir: {} is a link, another user's, or a file of root with a second name, and \
                     root could be led elsewhere by it; remove it, or run this as the user of the \
                     service (runuser -u USER -- metalmeshd ...)",
                    entry.display()
                ),
            }
        }
    }
    Ok(())
}

/// Judges an entry. `was_open` is `true` if a user beside root could put it there, `is_beside` if it is in the
/// data directory, under a name that the store does not use.
fn judge(entry: &FileStat, owner: FileOwner, was_open: bool, is_beside: bool) -> EntryVerdict {
    let is_root = entry.st_uid == ROOT.as_raw();
    let is_owners = entry.st_uid == owner.uid.as_raw();
    if is_dir(entry) {
        // A directory of a third user, such as an agent's, is not control's, and stays that user's. The
        // owner can give it another name: in the place of the store's its user could lead root elsewhere.
        return match (is_root || is_owners, is_beside) {
            (true, _) => EntryVerdict::Enter,
            (false, true) => EntryVerdict::Stay,
            (false, false) => EntryVerdict::Refuse,
        };
    }
    if !was_open && is_root {
        return EntryVerdict::Stay;
    }
    // A second name of a file of root may be one of /etc/shadow. Checkpoints of the state have second
    // names too, but they are the owner's.
    let is_plain = is_file(entry) && (is_owners || (is_root && entry.st_nlink == 1));
    match is_plain {
        true => EntryVerdict::Stay,
        false => EntryVerdict::Refuse,
    }
}

/// Gives the directory to the owner, with everything in it that is root's. Its directories are root's
/// until their last entry was given, so that nobody exchanges an entry meanwhile.
///
/// # Errors
/// An entry cannot be given away, or the directory is root's no more: the service was started meanwhile,
/// for which systemd gives the directory to its user.
pub(super) fn give(dir: &OwnedFd, path: &Path, owner: FileOwner) -> Result<()> {
    ensure!(
        stat_of(dir, path)?.st_uid == ROOT.as_raw(),
        "data_dir: {} was given to another user meanwhile; stop metalmeshd, and run this again",
        path.display()
    );
    give_below(dir, path, owner, 0)
}

fn give_below(dir: &OwnedFd, path: &Path, owner: FileOwner, depth: usize) -> Result<()> {
    let named = |path: &Path| format!("cannot give {} to the service's user", path.display());
    ensure!(
        depth <= DEPTH_MAX,
        "{}: it is more than {DEPTH_MAX} directories deep",
        named(path)
    );
    for name in names(dir).with_context(|| named(path))? {
        let entry = path.join(&name);
        let found = look_at(dir, &name).with_context(|| named(&entry))?;
        if found.st_uid != ROOT.as_raw() {
            continue;
        }
        if is_dir(&found) {
            let below = openat(dir, name.as_os_str(), DIRECTORY, Mode::empty());
            give_below(
                &below.with_context(|| named(&entry))?,
                &entry,
                owner,
                depth + 1,
            )?;
        } else if is_file(&found) {
            let file = openat(dir, name.as_os_str(), FILE, Mode::empty());
            let file = file.with_context(|| named(&entry))?;
            own(&file, owner).with_context(|| named(&entry))?;
        }
    }
    own(dir, owner).with_context(|| named(path))
}

fn own(file: &OwnedFd, owner: FileOwner) -> nix::Result<()> {
    fchown(file, Some(owner.uid), Some(owner.gid))
}

/// The names in a directory.
fn names(dir: &OwnedFd) -> nix::Result<Vec<OsString>> {
    // Opened anew: a list that was read to its end would be empty the next time.
    let mut list = Dir::openat(dir, ".", DIRECTORY, Mode::empty())?;
    let mut names = Vec::new();
    for entry in list.iter() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

fn look_at(dir: &OwnedFd, name: &OsStr) -> nix::Result<FileStat> {
    fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

fn is_dir(stat: &FileStat) -> bool {
    kind(stat) == SFlag::S_IFDIR
}

pub(super) fn is_file(stat: &FileStat) -> bool {
    kind(stat) == SFlag::S_IFREG
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn cannot_take(path: &Path) -> String {
    format!("data_dir: cannot take {} for root", path.display())
}
