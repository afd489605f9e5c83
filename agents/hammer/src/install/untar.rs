//! Unpacks a tar stream into a directory with owners, modes, times, extended attributes, device
//! nodes and hard links. Memory is bounded by one buffer and the constants below whatever the
//! archive contains, because its digest is checked only after it.
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

use super::bounded::{ArchivePosition, BoundedHeaders};
use super::rootfs::{Owner, Root, create, is_dir, own, owned_name, relative, remove};

/// Bytes of the buffer between stream and file.
const COPY_BUFFER: usize = 256 * 1024;
/// Directories of an archive at most; more is an error. Operating systems have some 100,000.
const DIRECTORIES_MAX: usize = 1_000_000;
/// Bytes of all directories' paths at most; they are kept in memory to the end.
const DIRECTORY_PATHS_LEN_MAX: usize = 128 << 20;
/// Entries of any kind at most: the number of inodes of a file system of 64 GiB.
const ENTRIES_MAX: u64 = 4 << 20;
/// Bytes of a path, and of a link's target, at most: Linux's own limit.
const PATH_LEN_MAX: usize = 4095;
/// Extended attributes of one entry at most.
const XATTRS_MAX: usize = 256;
/// Largest file that is written without a check of the free space, bytes.
const SMALL_FILE_LEN: u64 = 1 << 20;
/// Prefix of the PAX keys of extended attributes.
const PAX_XATTR: &str = "SCHILY.xattr.";

/// Counts of an unpacked archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Entries of any kind.
    pub entries: u64,
    /// Bytes of file contents.
    pub bytes: u64,
}

/// Unpacks `stream` below `root`.
///
/// # Errors
/// The stream's own error, `InvalidData` for a damaged or oversized archive, or the file system's
/// error (`StorageFull` if the image is too big).
pub fn unpack(stream: impl Read, root: &Root) -> io::Result<Unpacked> {
    let position = ArchivePosition::new();
    let stream = io::BufReader::with_capacity(COPY_BUFFER, stream);
    let mut archive = Archive::new(BoundedHeaders::new(stream, &position));
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
        // Skips content that nobody read, such as a directory's: it would count as headers.
        io::copy(&mut entry, &mut io::sink())?;
    }
}

struct Unpacker<'a> {
    root: &'a Root,
    /// The directory of the previous entry, kept open: archives list a directory's files together.
    parent: Option<(PathBuf, OwnedFd)>,
    /// Times of directories, set at the end, because each file written into one changes its time.
    dirs: Vec<(PathBuf, i64)>,
    /// Bytes of their paths.
    dirs_len: usize,
    buffer: Vec<u8>,
    done: Unpacked,
}

struct EntryMeta {
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
        // `git archive` begins with one. It is no file, and has no path.
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
                // By directory and name: `linkat` without AT_SYMLINK_FOLLOW does not follow the
                // last component, and `dir` keeps the others inside the root.
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
        meta: &EntryMeta,
    ) -> io::Result<()> {
        let (parent, name) = owned_name(path)?;
        let target = link_target(entry)?;
        self.open_parent(&parent)?;
        let dir = self.parent_fd()?;
        if is_dir(dir, &name) {
            return Err(invalid(format!(
                "{} is both a directory and a link",
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

    /// Creates a directory. An existing one, such as a mount point, keeps its content.
    fn directory(&mut self, path: &Path, meta: &EntryMeta) -> io::Result<()> {
        if let Ok((parent, name)) = owned_name(path) {
            self.open_parent(&parent)?;
            let dir = self.parent_fd()?;
            // Private until `own` below: the archive's mode comes with the archive's owner.
            match mkdirat(dir, name.as_os_str(), Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let fd = self.root.dir(path)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = File::from(openat(&fd, ".", flags, Mode::empty())?);
        match own(&dir, meta.owner) {
            // A mounted FAT file system has neither owners nor modes.
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
        meta: &EntryMeta,
    ) -> io::Result<()> {
        self.open_parent(parent)?;
        let dir = self.parent_fd()?;
        remove(dir, name)?;
        let (major, minor) = match kind {
            // Some writers leave the device fields of FIFOs blank.
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

    /// Sets the times of directories, children first.
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

fn meta<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<EntryMeta> {
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
    // A time before 1970 reads as a number over 63 bits. It becomes 1970: a file's time is not
    // worth failing an installation whose content is right.
    let mtime = i64::try_from(header.mtime()?).unwrap_or(0);
    Ok(EntryMeta {
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

/// Fails if a file, holes included, is larger than the free space. A sparse file has almost no
/// bytes in the archive, and would fill the disk with zeros before it failed.
fn has_room(file: &File, len: u64) -> io::Result<()> {
    if len <= SMALL_FILE_LEN {
        return Ok(());
    }
    let stat = fstatvfs(file)?;
    let free = stat.blocks_free().saturating_mul(stat.fragment_size());
    if len > free {
        let message = format!("a file of {len} bytes, but {free} bytes are free");
        return Err(io::Error::new(io::ErrorKind::StorageFull, message));
    }
    Ok(())
}

fn apply(file: &File, meta: &EntryMeta) -> io::Result<()> {
    match own(file, meta.owner) {
        // A mounted FAT file system has neither owners nor modes.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
        other => other?,
    }
    // After the owner: a change of owner drops file capabilities, which are an attribute.
    set_xattrs(file, meta)?;
    let time = TimeSpec::new(meta.mtime, 0);
    Ok(futimens(file.as_fd(), &time, &time)?)
}

/// Sets extended attributes. Those that the file system does not support (labels of a security
/// module that is not loaded, all on FAT) are left out.
fn set_xattrs(file: &File, meta: &EntryMeta) -> io::Result<()> {
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
