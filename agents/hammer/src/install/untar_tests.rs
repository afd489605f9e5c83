//! Archives that are unpacked, and archives that are refused.

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

/// Counts what is read of a stream.
struct Counted<R> {
    stream: R,
    read: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R> Counted<R> {
    fn new(stream: R) -> Self {
        let read = std::rc::Rc::default();
        Self { stream, read }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
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

/// One header, and as much of its content as `Read` gives.
fn endless(kind: EntryType, size: u64) -> impl Read {
    let mut header = header(kind, size, 0o644);
    header.set_path("long").unwrap();
    header.set_cksum();
    let bytes = header.as_bytes().to_vec();
    io::Cursor::new(bytes).chain(io::repeat(b'x').take(size))
}

#[test]
fn extensions_of_an_entry_are_bounded_before_the_digest_is_known() {
    for kind in [
        EntryType::XHeader,
        EntryType::GNULongName,
        EntryType::GNULongLink,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let counted = Counted::new(endless(kind, 64 << 20));
        let read = counted.read.clone();
        let error = unpack(counted, &root).unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::InvalidData,
            "{kind:?}: {error}"
        );
        assert!(read.get() < 4 << 20, "{kind:?}: {} bytes read", read.get());
    }
}

#[test]
fn contents_that_nobody_wants_are_passed_over() {
    let mut b = tar::Builder::new(Vec::new());
    let mut global = header(EntryType::XGlobalHeader, 3 << 20, 0o644);
    b.append_data(&mut global, "g", io::repeat(b'x').take(3 << 20))
        .unwrap();
    let mut file = header(EntryType::Regular, 3, 0o644);
    b.append_data(&mut file, "file", &b"abc"[..]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let done = unpack(&b.into_inner().unwrap()[..], &root).unwrap();
    assert_eq!((done.entries, done.bytes), (1, 3));
}

#[test]
fn a_path_longer_than_linux_takes_is_refused() {
    for len in [PATH_LEN_MAX, PATH_LEN_MAX + 2] {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let path = "a/".repeat(len / 2) + "f";
        let mut b = tar::Builder::new(Vec::new());
        let mut file = header(EntryType::Regular, 1, 0o644);
        b.append_data(&mut file, &path, &b"x"[..]).unwrap();
        let done = unpack(&b.into_inner().unwrap()[..], &root);
        assert_eq!(done.is_ok(), path.len() <= PATH_LEN_MAX, "{done:?}");
    }
}

#[test]
fn a_hole_larger_than_the_disk_is_not_written() {
    const HOLE: u64 = 1 << 60;
    let mut sparse = header(EntryType::GNUSparse, 0, 0o644);
    sparse.set_path("hole").unwrap();
    let gnu = sparse.as_gnu_mut().unwrap();
    gnu.set_real_size(HOLE);
    gnu.sparse[0].set_offset(HOLE);
    gnu.sparse[0].set_length(0);
    sparse.set_cksum();
    let mut archive = sparse.as_bytes().to_vec();
    archive.resize(3 * 512, 0);
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let error = unpack(&archive[..], &root).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    assert_eq!(dir.path().join("hole").metadata().unwrap().len(), 0);
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
