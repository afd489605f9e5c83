//! Access to the file system of the new system from outside.
//!
//! An image may contain any symbolic link, so the kernel resolves every path as if the target were
//! `/` (openat2 with `RESOLVE_IN_ROOT`): `etc -> /` in an image leads to the image's own root,
//! never to hammer's.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, symlinkat, unlinkat};

/// Most bytes of a file that [`Root::read`] reads, such as passwd. A longer one is refused.
const READ_MAX: u64 = 8 << 20;

/// A directory that stands for `/`.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
}

/// Owner, group and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Permission bits, with set-uid, set-gid and sticky.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Owner {
    /// User and group root, with this mode.
    #[must_use]
    pub const fn root(mode: u32) -> Self {
        Self {
            mode,
            uid: 0,
            gid: 0,
        }
    }
}

impl Root {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// When it does not exist or is not a directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            dir: File::open(path)?.into(),
        })
    }

    /// The flags of openat2 that keep a path inside the root. Magic links (/proc/*/fd) are refused,
    /// because they lead out without a path.
    fn how(flags: OFlag) -> OpenHow {
        OpenHow::new()
            .flags(flags | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS)
    }

    /// The directory at `path`, for use with the `…at` calls.
    ///
    /// # Errors
    /// When it does not exist or is not a directory.
    pub fn dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Ok(openat2(
            &self.dir,
            path,
            Self::how(OFlag::O_PATH | OFlag::O_DIRECTORY),
        )?)
    }

    /// Like `dir`, but creates the directory and its parents if they are missing.
    ///
    /// # Errors
    /// When a component exists and is not a directory.
    pub fn make_dir(&self, path: &Path, owner: Owner) -> io::Result<OwnedFd> {
        let path = relative(path)?;
        match self.dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let (parent, name) = split(&path)?;
        let parent = self.make_dir(parent, Owner::root(0o755))?;
        // The name may exist although `dir` did not find it: as a link to nowhere. `O_NOFOLLOW`
        // below then fails; following it would put files where the link's maker wants them.
        match mkdirat(&parent, name, Mode::from_bits_truncate(owner.mode)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(e.into()),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let dir = openat(&parent, name, flags, Mode::empty())?;
        own(&dir, owner)?;
        Ok(dir)
    }

    /// Writes a file. An existing file or link is replaced, never followed.
    ///
    /// # Errors
    /// When a directory is at the path, or the file system fails.
    pub fn write(&self, path: &Path, owner: Owner, bytes: &[u8]) -> io::Result<()> {
        let path = relative(path)?;
        let (parent, name) = split(&path)?;
        let parent = self.make_dir(parent, Owner::root(0o755))?;
        // Not synced here: the unmount after the last step writes everything out.
        let mut file = create(&parent, name)?;
        file.write_all(bytes)?;
        own(&file, owner)
    }

    /// Makes a symbolic link. An existing file or link is replaced.
    ///
    /// # Errors
    /// When a directory is at the path, or the file system fails.
    pub fn symlink(&self, path: &Path, target: &str) -> io::Result<()> {
        let path = relative(path)?;
        let (parent, name) = split(&path)?;
        let parent = self.make_dir(parent, Owner::root(0o755))?;
        remove(&parent, name)?;
        Ok(symlinkat(target, &parent, name)?)
    }

    /// The content of a small file. Links are followed inside the root.
    ///
    /// # Errors
    /// When it does not exist, cannot be read, is no regular file, or is longer than 8 MiB.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // Not blocking: opening a FIFO of the image would wait for a writer for ever.
        let how = Self::how(OFlag::O_RDONLY | OFlag::O_NONBLOCK);
        let fd = openat2(&self.dir, &relative(path)?, how)?;
        let file = File::from(fd);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut out = Vec::new();
        file.take(READ_MAX + 1).read_to_end(&mut out)?;
        if u64::try_from(out.len()).is_ok_and(|length| length > READ_MAX) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(out)
    }

    /// Like `read`, as text. Empty if the file does not exist.
    ///
    /// # Errors
    /// When it exists and cannot be read, or is not UTF-8: written again, it would lose what it
    /// held.
    pub fn text(&self, path: &str) -> io::Result<String> {
        match self.read(Path::new(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => String::from_utf8(read?)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }

    /// `true` if the path exists, links followed.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        relative(Path::new(path))
            .and_then(|p| Ok(openat2(&self.dir, &p, Self::how(OFlag::O_PATH))?))
            .is_ok()
    }

    /// The names in a directory, sorted. Empty if it does not exist or cannot be read.
    #[must_use]
    pub fn names(&self, path: &str) -> Vec<String> {
        let list = || -> io::Result<Vec<String>> {
            let how = Self::how(OFlag::O_RDONLY | OFlag::O_DIRECTORY);
            let mut dir = Dir::from_fd(openat2(&self.dir, &relative(Path::new(path))?, how)?)?;
            let names = dir
                .iter()
                .flatten()
                .map(|e| e.file_name().to_string_lossy().into_owned());
            Ok(names.filter(|n| n != "." && n != "..").collect())
        };
        let mut names = list().unwrap_or_default();
        names.sort();
        names
    }

    /// Removes a file or link. No error if it does not exist.
    ///
    /// # Errors
    /// When a directory is at the path, or the file system fails.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let path = relative(Path::new(path))?;
        let (parent, name) = split(&path)?;
        match self.dir(parent) {
            Ok(parent) => remove(&parent, name),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
    }
}

/// Sets owner, then mode: in the other order the change of owner would clear the set-uid bits.
pub(crate) fn own(fd: &impl AsFd, owner: Owner) -> io::Result<()> {
    fchown(
        fd,
        Some(Uid::from_raw(owner.uid)),
        Some(Gid::from_raw(owner.gid)),
    )?;
    Ok(fchmod(fd, Mode::from_bits_truncate(owner.mode & 0o7777))?)
}

/// Creates a file in `dir`, replacing a file or link of that name. Mode 0600 until its owner is
/// set, so that a secret is never readable in between.
pub(crate) fn create(dir: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    match openat(dir, name, flags, mode) {
        // Removed and created anew instead of truncated: opening it would follow a link of the
        // image, or write into a hard link's other names.
        Err(Errno::EEXIST) => {
            remove(dir, name)?;
            Ok(openat(dir, name, flags, mode)?.into())
        }
        other => Ok(other?.into()),
    }
}

/// Removes a name that is not a directory. No error if it does not exist.
pub(crate) fn remove(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(dir, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// `true` if `name` in `dir` is a directory itself, not a link to one.
pub(crate) fn is_dir(dir: &OwnedFd, name: &OsStr) -> bool {
    fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|s| SFlag::from_bits_truncate(s.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
}

/// Makes a path relative to the root: without leading slashes and `.`. `..` is an error, because no
/// valid image or configuration has it.
pub(crate) fn relative(path: &Path) -> io::Result<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                let text = format!("path {} leads upwards", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
    }
    Ok(out)
}

/// Parent and last name of a relative path.
pub(crate) fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "empty path")),
    }
}

/// Like `split`, with owned parts.
pub(crate) fn owned_name(path: &Path) -> io::Result<(PathBuf, OsString)> {
    split(path).map(|(parent, name)| (parent.to_path_buf(), name.to_os_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me(mode: u32) -> Owner {
        Owner {
            mode,
            uid: Uid::effective().as_raw(),
            gid: Gid::effective().as_raw(),
        }
    }

    #[test]
    fn links_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("evil")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("up")).unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        root.write(Path::new("/up/etc/hosts"), me(0o644), b"x")
            .unwrap();
        assert_eq!(root.text("etc/hosts").unwrap(), "x");
        // The link's target does not exist below the root, so it is no way out.
        assert!(root.write(Path::new("evil/file"), me(0o644), b"x").is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert!(root.write(Path::new("../file"), me(0o644), b"x").is_err());
    }

    #[test]
    fn writing_replaces_links_and_keeps_modes() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        root.symlink(Path::new("etc/resolv.conf"), "../run/x")
            .unwrap();
        root.write(Path::new("etc/resolv.conf"), me(0o640), b"nameserver")
            .unwrap();
        let meta = std::fs::symlink_metadata(dir.path().join("etc/resolv.conf")).unwrap();
        assert!(meta.is_file());
        assert_eq!(meta.permissions().mode() & 0o7777, 0o640);
        assert_eq!(root.names("etc"), ["resolv.conf"]);
        root.remove("etc/resolv.conf").unwrap();
        root.remove("etc/resolv.conf").unwrap();
        root.remove("not/there").unwrap();
        assert!(!root.exists("etc/resolv.conf") && root.exists("etc"));
    }
    #[test]
    fn a_file_that_cannot_be_read_is_not_taken_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        nix::unistd::mkfifo(&dir.path().join("passwd"), mode).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let (to, read) = std::sync::mpsc::channel();
        std::thread::spawn(move || to.send(root.text("passwd")));
        let text = read.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!(text.unwrap().unwrap_err().to_string(), "not a regular file");
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(root.text("group").unwrap(), "", "it does not exist");
        std::fs::create_dir(dir.path().join("shadow")).unwrap();
        std::fs::write(dir.path().join("gshadow"), [0xff, b':']).unwrap();
        std::fs::write(dir.path().join("hosts"), vec![b'x'; 8 << 20]).unwrap();
        std::fs::write(dir.path().join("longer"), vec![b'x'; (8 << 20) + 1]).unwrap();
        assert_eq!(root.text("hosts").unwrap().len(), 8 << 20);
        for path in ["shadow", "gshadow", "longer"] {
            assert!(root.text(path).is_err(), "{path}");
        }
    }
}
