//! Unpacks a tar stream into a directory as root would: owners, modes, times, extended attributes,
//! device nodes, hard links. Memory stays at one buffer, whatever the archive holds.
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
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat, linkat, symlinkat};
use tar::{Archive, Entry, EntryType};
use xattr::FileExt;

use super::rootfs::{Owner, Root, create, is_dir, own, owned_name, relative, remove};

const COPY_BUFFER: usize = 256 * 1024;
/// No file of an operating system has more; the archive is then not what it says it is.
const DIRECTORIES_MAX: usize = 1_000_000;
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
    let mut archive = Archive::new(io::BufReader::with_capacity(COPY_BUFFER, stream));
    let mut unpacker = Unpacker {
        root,
        parent: None,
        dirs: Vec::new(),
        buffer: vec![0; COPY_BUFFER],
        done: Unpacked::default(),
    };
    for entry in archive.entries()? {
        unpacker.entry(entry?)?;
    }
    unpacker.finish()
}

struct Unpacker<'a> {
    root: &'a Root,
    /// The directory of the entry before: archives list a directory's files together.
    parent: Option<(PathBuf, OwnedFd)>,
    /// Times of directories, set at the end: filling a directory changes them.
    dirs: Vec<(PathBuf, i64)>,
    buffer: Vec<u8>,
    done: Unpacked,
}

struct Meta {
    owner: Owner,
    mtime: i64,
    xattrs: Vec<(OsString, Vec<u8>)>,
}

impl Unpacker<'_> {
    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> io::Result<()> {
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            return Ok(());
        }
        let path = relative(Path::new(&OsString::from_vec(
            entry.path_bytes().into_owned(),
        )))?;
        let meta = meta(&mut entry)?;
        self.done.entries += 1;
        if path.as_os_str().is_empty() {
            return self.directory(&path, &meta);
        }
        let (parent, name) = owned_name(&path)?;
        match kind {
            EntryType::Directory => self.directory(&path, &meta),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.open_parent(&parent)?;
                let file = create(self.parent_fd()?, &name)?;
                self.copy(&mut entry, &file)?;
                apply(&file, &meta)
            }
            EntryType::Symlink => self.symlink(&entry, &path, &meta),
            EntryType::Link => {
                let target = relative(Path::new(&link_target(&entry)?))?;
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
            EntryType::Char => self.node(&entry, &parent, &name, SFlag::S_IFCHR, &meta),
            EntryType::Block => self.node(&entry, &parent, &name, SFlag::S_IFBLK, &meta),
            EntryType::Fifo => self.node(&entry, &parent, &name, SFlag::S_IFIFO, &meta),
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
        if self.dirs.len() >= DIRECTORIES_MAX {
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
    Ok(OsString::from_vec(target.into_owned()))
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
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn header(kind: EntryType, size: u64, mode: u32) -> tar::Header {
        let mut h = tar::Header::new_gnu();
        h.set_entry_type(kind);
        h.set_size(size);
        h.set_mode(mode);
        h.set_uid(u64::from(Uid::effective().as_raw()));
        h.set_gid(u64::from(Gid::effective().as_raw()));
        h.set_mtime(1_000_000_000);
        h
    }

    fn sample() -> Vec<u8> {
        let mut b = tar::Builder::new(Vec::new());
        let add = |b: &mut tar::Builder<Vec<u8>>, mut h: tar::Header, path: &str, data: &[u8]| {
            b.append_data(&mut h, path, data).unwrap();
        };
        add(
            &mut b,
            header(EntryType::Directory, 0, 0o755),
            "./usr/bin/",
            b"",
        );
        add(
            &mut b,
            header(EntryType::Regular, 5, 0o4755),
            "usr/bin/su",
            b"hello",
        );
        let long = format!("usr/{}/file", "x".repeat(150));
        add(&mut b, header(EntryType::Regular, 3, 0o600), &long, b"abc");
        let mut link = header(EntryType::Symlink, 0, 0o777);
        b.append_link(&mut link, "bin", "usr/bin").unwrap();
        let mut hard = header(EntryType::Link, 0, 0o755);
        b.append_link(&mut hard, "bin/also", "usr/bin/su").unwrap();
        add(&mut b, header(EntryType::Fifo, 0, 0o640), "run/pipe", b"");
        b.into_inner().unwrap()
    }

    #[test]
    fn everything_arrives_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let done = unpack(&sample()[..], &root).unwrap();
        assert_eq!((done.entries, done.bytes), (6, 8));
        let su = std::fs::metadata(dir.path().join("usr/bin/su")).unwrap();
        assert_eq!(su.permissions().mode() & 0o7777, 0o4755);
        assert_eq!((su.mtime(), su.nlink()), (1_000_000_000, 2));
        assert_eq!(
            std::fs::metadata(dir.path().join("usr/bin"))
                .unwrap()
                .mtime(),
            1_000_000_000
        );
        assert_eq!(
            std::fs::read_link(dir.path().join("bin")).unwrap(),
            Path::new("usr/bin")
        );
        assert!(
            dir.path()
                .join(format!("usr/{}/file", "x".repeat(150)))
                .exists()
        );
        // Twice over the same tree, as after a retry.
        unpack(&sample()[..], &root).unwrap();
    }

    #[test]
    fn a_path_upwards_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut h = header(EntryType::Regular, 1, 0o644);
        h.as_mut_bytes()[..10].copy_from_slice(b"../../evil");
        h.set_cksum();
        let mut b = tar::Builder::new(Vec::new());
        b.append(&h, &b"x"[..]).unwrap();
        let error = unpack(&b.into_inner().unwrap()[..], &root).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_link_out_of_the_image_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut b = tar::Builder::new(Vec::new());
        let mut link = header(EntryType::Symlink, 0, 0o777);
        b.append_link(&mut link, "out", outside.path()).unwrap();
        b.append_data(
            &mut header(EntryType::Regular, 1, 0o644),
            "out/file",
            &b"x"[..],
        )
        .unwrap();
        assert!(unpack(&b.into_inner().unwrap()[..], &root).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let whole = sample();
        for end in [600, 1_300, 2_700] {
            let dir = tempfile::tempdir().unwrap();
            let root = Root::open(dir.path()).unwrap();
            assert!(unpack(&whole[..end], &root).is_err(), "cut at {end}");
        }
    }
}
