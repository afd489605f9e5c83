//! The directories above the data directory: entered one by one, each checked before its next name is
//! looked up.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{open as open_path, openat};
use nix::sys::stat::{FileStat, Mode, fchmod, mkdirat};

use super::{DIRECTORY, stat_of};

/// Mode of a directory that is made above the data directory.
const ABOVE: Mode = Mode::from_bits_truncate(0o755);
/// Mode of a data directory.
const OWN: Mode = Mode::from_bits_truncate(0o700);
/// Bit of directories in which users can remove only what is theirs, such as /tmp.
const STICKY: u32 = 0o1000;

/// Opens the directory. `None` means that it does not exist and `is_made` is `false`.
///
/// # Errors
/// A user beside root can replace a directory of the path, or a part of the path is a link.
pub(super) fn open(path: &Path, is_made: bool) -> Result<Option<OwnedFd>> {
    let named = || format!("data_dir: cannot use {}", path.display());
    let path = std::path::absolute(path).with_context(named)?;
    let mut reached = PathBuf::from("/");
    let mut dir = open_path("/", DIRECTORY, Mode::empty()).with_context(named)?;
    for part in path.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            Component::ParentDir => bail!("{}: its path has ..; write it without", named()),
        };
        check_above(&dir, &reached)?;
        reached.push(name);
        let mode = if reached == path { OWN } else { ABOVE };
        dir = match enter(&dir, name, is_made.then_some(mode)) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENOTDIR) => bail!(
                "{}: {} is a link or no directory, and root follows no link; name the directory that \
                 it leads to",
                named(),
                reached.display()
            ),
            Err(error) => return Err(error).with_context(named),
        };
    }
    Ok(Some(dir))
}

/// Opens a directory by its name, and makes it if `made` has a mode and it does not exist.
fn enter(parent: &OwnedFd, name: &OsStr, made: Option<Mode>) -> nix::Result<Option<OwnedFd>> {
    match openat(parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ENOENT) => {}
        opened => return opened.map(Some),
    }
    let Some(mode) = made else { return Ok(None) };
    mkdirat(parent, name, mode)?;
    let dir = openat(parent, name, DIRECTORY, Mode::empty())?;
    // The umask may have closed it to the user of the service.
    fchmod(&dir, mode)?;
    Ok(Some(dir))
}

/// Checks that nobody but root can replace what is in a directory above.
fn check_above(dir: &OwnedFd, path: &Path) -> Result<()> {
    let stat = stat_of(dir, path)?;
    let others = match stat.st_uid {
        0 if stat.st_mode & STICKY != 0 => None,
        0 => other_writers(&stat),
        uid => Some(format!("user {uid}")),
    };
    let Some(others) = others else { return Ok(()) };
    bail!(
        "data_dir: {others} can write to {}, which is above it, and could have root write elsewhere; \
         make that directory root's and close it (chown root, chmod go-w), name another data_dir, or run \
         this as the user of the service (runuser -u USER -- metalmeshd ...)",
        path.display()
    )
}

/// The users beside the owner who can write to a file. `None` means nobody. Members of root's group
/// count as root.
pub(super) fn other_writers(stat: &FileStat) -> Option<String> {
    match (stat.st_mode & 0o002, stat.st_mode & 0o020, stat.st_gid) {
        (0, 0, _) | (0, _, 0) => None,
        (0, _, gid) => Some(format!("group {gid}")),
        _ => Some("everybody".to_owned()),
    }
}
