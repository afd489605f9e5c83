//! Unpacks a tar stream into a directory as root would: owners, modes, times, extended attributes,
//! device nodes, hard links. Memory stays at one buffer and the bounds below, whatever the archive
//! holds: nobody knows yet whether it is the image that was ordered.
//!
//! Paths with `..` are refused, and links in the archive lead nowhere outside (see `rootfs`).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, futimens, makedev, mkdirat, mknodat, utimensat};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat, linkat, symlinkat};
use tar::{Archive, Entry, EntryType};
use xattr::FileExt;

use super::bounded::{Headers, Position};
use super::rootfs::{Owner, Root, create, is_dir, own, owned_name, relative, remove};

const COPY_BUFFER: usize = 256 * 1024;
/// No file of an operating system has more; the archive is then not what it says it is.
const DIRECTORIES_MAX: usize = 1_000_000;
/// Bytes of all directories' paths, which are kept to the end.
const DIRECTORY_PATHS_LEN_MAX: usize = 128 << 20;
/// Entries of any kind: as many as a file system of 64 GiB has inodes.
const ENTRIES_MAX: u64 = 4 << 20;
/// Longest path and longest target of a link that Linux takes, bytes.
const PATH_LEN_MAX: usize = 4095;
/// Extended attributes of one entry.
const XATTRS_MAX: usize = 256;
/// Files up to here are written without a look at the room that is left.
const SMALL_FILE_LEN: u64 = 1 << 20;
const PAX_XATTR: &str = "SCHILY.xattr.";

/// What was unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    pub entries: u64,
    /// Of file contents.
    pub bytes: u64,
}

/// Unpacks all of `stream` below `root`.
///
/// # Errors
/// What the stream gives, a damaged archive (`InvalidData`), or what the file system says
/// (`StorageFull` when the image is too big).
pub fn unpack(stream: impl Read, root: &Root) -> io::Result<Unpacked> {
    let position = Position::new();
    let stream = io::BufReader::with_capacity(COPY_BUFFER, stream);
    let mut archive = Archive::new(Headers::new(stream, &position));
    let mut unpacker = Unpacker {
        root,
        parent: None,
        dirs: Vec::new(),
        dirs_len: 0,
        buffer: vec![0; COPY_BUFFER],
        done: Unpacked::default(),
    };
    let mut entries = archive.entries()?;
    loop {
        position.headers();
        let Some(entry) = entries.next() else {
            return unpacker.finish();
        };
        let mut entry = entry?;
        position.content();
        unpacker.entry(&mut entry)?;
        // The rest of the content, such as a directory's: it would count as headers.
        io::copy(&mut entry, &mut io::sink())?;
    }
}

struct Unpacker<'a> {
    root: &'a Root,
    /// The directory of the entry before: archives list a directory's files together.
    parent: Option<(PathBuf, OwnedFd)>,
    /// Times of directories, set at the end: filling a directory changes them.
    dirs: Vec<(PathBuf, i64)>,
    /// Bytes of their paths.
    dirs_len: usize,
    buffer: Vec<u8>,
    done: Unpacked,
}

struct Meta {
    owner: Owner,
    mtime: i64,
    xattrs: Vec<(OsString, Vec<u8>)>,
}

impl Unpacker<'_> {
    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> io::Result<()> {
        let kind = entry.header().entry_type();
        self.done.entries += 1;
        if self.done.entries > ENTRIES_MAX {
            return Err(invalid(format!("more than {ENTRIES_MAX} entries")));
        }
        if kind.is_pax_global_extensions() {
            self.done.entries -= 1;
            return Ok(());
        }
        let path = bounded_path(entry.path_bytes().into_owned())?;
        let path = relative(Path::new(&path))?;
        let meta = meta(entry)?;
        if path.as_os_str().is_empty() {
            return self.directory(&path, &meta);
        }
        let (parent, name) = owned_name(&path)?;
        match kind {
            EntryType::Directory => self.directory(&path, &meta),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.open_parent(&parent)?;
                let file = create(self.parent_fd()?, &name)?;
                has_room(&file, entry.size())?;
                self.copy(entry, &file)?;
                apply(&file, &meta)
            }
            EntryType::Symlink => self.symlink(entry, &path, &meta),
            EntryType::Link => {
                let target = relative(Path::new(&link_target(entry)?))?;
                let (target_parent, target_name) = owned_name(&target)?;
                let from = self.root.dir(&target_parent)?;
                self.open_parent(&parent)?;
                let dir = self.parent_fd()?;
                remove(dir, &name)?;
                Ok(linkat(
                    &from,
                    target_name.as_os_str(),
                    dir,
                    name.as_os_str(),
                    AtFlags::empty(),
                )?)
            }
            EntryType::Char => self.node(entry, &parent, &name, SFlag::S_IFCHR, &meta),
            EntryType::Block => self.node(entry, &parent, &name, SFlag::S_IFBLK, &meta),
            EntryType::Fifo => self.node(entry, &parent, &name, SFlag::S_IFIFO, &meta),
            other => Err(invalid(format!(
                "{}: unknown entry type {other:?}",
                path.display()
            ))),
        }
    }

    fn symlink<R: Read>(
        &mut self,
        entry: &Entry<'_, R>,
        path: &Path,
        meta: &Meta,
    ) -> io::Result<()> {
        let (parent, name) = owned_name(path)?;
        let target = link_target(entry)?;
        self.open_parent(&parent)?;
        let dir = self.parent_fd()?;
        if is_dir(dir, &name) {
            return Err(invalid(format!(
                "{} is a directory and a link",
                path.display()
            )));
        }
        remove(dir, &name)?;
        symlinkat(target.as_os_str(), dir, name.as_os_str())?;
        let (uid, gid) = (Uid::from_raw(meta.owner.uid), Gid::from_raw(meta.owner.gid));
        fchownat(
            dir,
            name.as_os_str(),
            Some(uid),
            Some(gid),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        )?;
        let time = TimeSpec::new(meta.mtime, 0);
        Ok(utimensat(
            dir,
            name.as_os_str(),
            &time,
            &time,
            UtimensatFlags::NoFollowSymlink,
        )?)
    }

    fn open_parent(&mut self, path: &Path) -> io::Result<()> {
        if self.parent.as_ref().is_none_or(|(open, _)| open != path) {
            let fd = match self.root.dir(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    self.root.make_dir(path, Owner::root(0o755))?
                }
                other => other?,
            };
            self.parent = Some((path.to_path_buf(), fd));
        }
        Ok(())
    }

    fn parent_fd(&self) -> io::Result<&OwnedFd> {
        self.parent
            .as_ref()
            .map(|(_, fd)| fd)
            .ok_or_else(|| invalid("no parent".to_string()))
    }

    /// A directory that is there already, such as a mount point, keeps what is in it.
    fn directory(&mut self, path: &Path, meta: &Meta) -> io::Result<()> {
        if let Ok((parent, name)) = owned_name(path) {
            self.open_parent(&parent)?;
            let dir = self.parent_fd()?;
            match mkdirat(dir, name.as_os_str(), Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let fd = self.root.dir(path)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = File::from(openat(&fd, ".", flags, Mode::empty())?);
        match own(&dir, meta.owner) {
            // A mounted FAT has neither owners nor modes.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
        set_xattrs(&dir, meta)?;
        self.dirs_len += path.as_os_str().len();
        if self.dirs.len() >= DIRECTORIES_MAX || self.dirs_len > DIRECTORY_PATHS_LEN_MAX {
            return Err(invalid("too many directories".to_string()));
        }
        self.dirs.push((path.to_path_buf(), meta.mtime));
        Ok(())
    }

    fn node<R: Read>(
        &mut self,
        entry: &Entry<'_, R>,
        parent: &Path,
        name: &OsString,
        kind: SFlag,
        meta: &Meta,
    ) -> io::Result<()> {
        self.open_parent(parent)?;
        let dir = self.parent_fd()?;
        remove(dir, name)?;
        let (major, minor) = match kind {
            // Some writers leave the fields blank.
            SFlag::S_IFIFO => (0, 0),
            _ => device(entry.header())?,
        };
        let mode = Mode::from_bits_truncate(meta.owner.mode);
        mknodat(dir, name.as_os_str(), kind, mode, makedev(major, minor))?;
        let (uid, gid) = (Uid::from_raw(meta.owner.uid), Gid::from_raw(meta.owner.gid));
        Ok(fchownat(
            dir,
            name.as_os_str(),
            Some(uid),
            Some(gid),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        )?)
    }

    fn copy<R: Read>(&mut self, entry: &mut Entry<'_, R>, mut file: &File) -> io::Result<()> {
        loop {
            let read = entry.read(&mut self.buffer)?;
            let Some(data) = self.buffer.get(..read).filter(|d| !d.is_empty()) else {
                return Ok(());
            };
            file.write_all(data)?;
            self.done.bytes += read as u64;
        }
    }

    fn finish(self) -> io::Result<Unpacked> {
        for (path, mtime) in self.dirs.iter().rev() {
            let time = TimeSpec::new(*mtime, 0);
            let fd = self.root.dir(path)?;
            match utimensat(&fd, ".", &time, &time, UtimensatFlags::FollowSymlink) {
                Ok(()) | Err(Errno::EPERM) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(self.done)
    }
}

fn meta<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<Meta> {
    let mut xattrs = Vec::new();
    if let Some(extensions) = entry.pax_extensions()? {
        for extension in extensions {
            let extension = extension?;
            let key = extension.key().unwrap_or_default();
            if let Some(name) = key.strip_prefix(PAX_XATTR) {
                if xattrs.len() >= XATTRS_MAX {
                    return Err(invalid("too many extended attributes".to_string()));
                }
                xattrs.push((OsString::from(name), extension.value_bytes().to_vec()));
            }
        }
    }
    let header = entry.header();
    let id =
        |value: u64| u32::try_from(value).map_err(|_| invalid("owner over 32 bits".to_string()));
    let owner = Owner {
        mode: header.mode()?,
        uid: id(header.uid()?)?,
        gid: id(header.gid()?)?,
    };
    let mtime = i64::try_from(header.mtime()?).unwrap_or(0);
    Ok(Meta {
        owner,
        mtime,
        xattrs,
    })
}

fn device(header: &tar::Header) -> io::Result<(u64, u64)> {
    let number = |n: Option<u32>| u64::from(n.unwrap_or(0));
    Ok((
        number(header.device_major()?),
        number(header.device_minor()?),
    ))
}

fn link_target<R: Read>(entry: &Entry<'_, R>) -> io::Result<OsString> {
    let target = entry
        .link_name_bytes()
        .ok_or_else(|| invalid("a link without target".to_string()))?;
    bounded_path(target.into_owned())
}

fn bounded_path(bytes: Vec<u8>) -> io::Result<OsString> {
    if bytes.len() > PATH_LEN_MAX {
        let len = bytes.len();
        return Err(invalid(format!(
            "a path of {len} bytes; Linux takes {PATH_LEN_MAX}"
        )));
    }
    Ok(OsString::from_vec(bytes))
}

/// Fails at once where a file, holes and all, is larger than what is free: a sparse one has next
/// to no bytes in the archive and would fill the disk with zeros first.
fn has_room(file: &File, len: u64) -> io::Result<()> {
    if len <= SMALL_FILE_LEN {
        return Ok(());
    }
    let stat = fstatvfs(file)?;
    let free = stat.blocks_free().saturating_mul(stat.fragment_size());
    if len > free {
        let message = format!("a file of {len} bytes, where {free} are free");
        return Err(io::Error::new(io::ErrorKind::StorageFull, message));
    }
    Ok(())
}

fn apply(file: &File, meta: &Meta) -> io::Result<()> {
    match own(file, meta.owner) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
        other => other?,
    }
    // After the owner: a change of owner drops file capabilities.
    set_xattrs(file, meta)?;
    let time = TimeSpec::new(meta.mtime, 0);
    Ok(futimens(file.as_fd(), &time, &time)?)
}

/// Attributes that the file system cannot hold (labels of a security module that is not loaded,
/// anything on FAT) are left out.
fn set_xattrs(file: &File, meta: &Meta) -> io::Result<()> {
    for (name, value) in &meta.xattrs {
        match file.set_xattr(name, value) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {}
            other => other?,
        }
    }
    Ok(())
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
#[path = "untar_tests.rs"]
mod tests;
