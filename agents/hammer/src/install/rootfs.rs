//! The file system of the system being installed, from outside.
//!
//! An image may hold any symbolic link, so every path is resolved by the kernel as if the target
//! were `/` (openat2 with `RESOLVE_IN_ROOT`): `etc -> /` in an image leads to the image's own root,
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

/// Largest file that is read whole, bytes: passwd, unit files and the like.
const READ_MAX: u64 = 8 << 20;

/// A directory that stands for `/`.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
}

/// Who owns a file and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

impl Owner {
    /// Of root, with this mode.
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
    /// When it is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            dir: File::open(path)?.into(),
        })
    }

    fn how(flags: OFlag) -> OpenHow {
        OpenHow::new()
            .flags(flags | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS)
    }

    /// The directory at `path`, for use with the `…at` calls.
    ///
    /// # Errors
    /// When it is not there or no directory.
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

    /// Like `dir`, with its parents and itself made where they are missing.
    ///
    /// # Errors
    /// When a component is there and no directory.
    pub fn make_dir(&self, path: &Path, owner: Owner) -> io::Result<OwnedFd> {
        let path = relative(path)?;
        match self.dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let (parent, name) = split(&path)?;
        let parent = self.make_dir(parent, Owner::root(0o755))?;
        match mkdirat(&parent, name, Mode::from_bits_truncate(owner.mode)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(e.into()),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let dir = openat(&parent, name, flags, Mode::empty())?;
        own(&dir, owner)?;
        Ok(dir)
    }

    /// Writes a file, in place of whatever stood there.
    ///
    /// # Errors
    /// As the file system says.
    pub fn write(&self, path: &Path, owner: Owner, bytes: &[u8]) -> io::Result<()> {
        let path = relative(path)?;
        let (parent, name) = split(&path)?;
        let parent = self.make_dir(parent, Owner::root(0o755))?;
        let mut file = create(&parent, name)?;
        file.write_all(bytes)?;
        own(&file, owner)
    }

    /// Makes a symbolic link, in place of whatever stood there.
    ///
    /// # Errors
    /// As the file system says.
    pub fn symlink(&self, path: &Path, target: &str) -> io::Result<()> {
        let path = relative(path)?;
        let (parent, name) = split(&path)?;
        let parent = self.make_dir(parent, Owner::root(0o755))?;
        remove(&parent, name)?;
        Ok(symlinkat(target, &parent, name)?)
    }

    /// The content of a small file; links are followed inside the root.
    ///
    /// # Errors
    /// When it is not there.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let fd = openat2(&self.dir, &relative(path)?, Self::how(OFlag::O_RDONLY))?;
        let mut out = Vec::new();
        File::from(fd).take(READ_MAX).read_to_end(&mut out)?;
        Ok(out)
    }

    /// Like `read`, as text; empty when it is not there.
    #[must_use]
    pub fn text(&self, path: &str) -> String {
        let bytes = self.read(Path::new(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether something stands there, links followed.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        relative(Path::new(path))
            .and_then(|p| Ok(openat2(&self.dir, &p, Self::how(OFlag::O_PATH))?))
            .is_ok()
    }

    /// Names in a directory, sorted; empty when it is not there.
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

    /// Removes a file or link; nothing when it is not there.
    ///
    /// # Errors
    /// As the file system says.
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

/// Sets owner, then mode: a change of owner clears the set-uid bits.
pub(crate) fn own(fd: &impl AsFd, owner: Owner) -> io::Result<()> {
    fchown(
        fd,
        Some(Uid::from_raw(owner.uid)),
        Some(Gid::from_raw(owner.gid)),
    )?;
    Ok(fchmod(fd, Mode::from_bits_truncate(owner.mode & 0o7777))?)
}

/// A new file in `dir`, in place of what was there; private until its owner is set.
pub(crate) fn create(dir: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    match openat(dir, name, flags, mode) {
        Err(Errno::EEXIST) => {
            remove(dir, name)?;
            Ok(openat(dir, name, flags, mode)?.into())
        }
        other => Ok(other?.into()),
    }
}

/// Removes a name that is no directory; nothing when it is not there.
pub(crate) fn remove(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(dir, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Whether `name` in `dir` is itself a directory.
pub(crate) fn is_dir(dir: &OwnedFd, name: &OsStr) -> bool {
    fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|s| SFlag::from_bits_truncate(s.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
}

/// A path below the root: without leading slashes and dots. `..` is refused, since no honest
/// image or configuration has it.
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

/// Owned name, for callers that keep it beside the descriptor.
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
        assert_eq!(root.text("etc/hosts"), "x");
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
}
