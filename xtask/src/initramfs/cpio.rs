//! A writer of newc cpio archives, the format of Linux's initramfs.
//!
//! Deterministic: entries are sorted by path, owned by root, dated 0, and numbered in order.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Dir { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link { target: String },
    Char { mode: u32, major: u32, minor: u32 },
}

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;
const S_IFCHR: u32 = 0o020_000;

/// An archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    entries: BTreeMap<String, Node>,
}

impl Archive {
    /// Puts `node` at `path` (relative, no leading slash) and makes its parents.
    pub(crate) fn insert(&mut self, path: &str, node: Node) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            let parent = path[..at].to_string();
            self.entries
                .entry(parent)
                .or_insert(Node::Dir { mode: 0o755 });
        }
        self.entries.insert(path.to_string(), node);
    }

    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.insert(
            path,
            Node::File {
                mode,
                bytes: bytes.into(),
            },
        );
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.insert(
            path,
            Node::Link {
                target: target.to_string(),
            },
        );
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    /// Writes the archive with its trailer, padded to 512 bytes.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<u64> {
        let mut w = Counting { out, written: 0 };
        for (ino, (path, node)) in (1u32..).zip(&self.entries) {
            write_entry(&mut w, ino, path, node)?;
        }
        write_record(&mut w, &Header::default(), "TRAILER!!!", &[])?;
        w.pad_to(512)?;
        Ok(w.written)
    }
}

#[derive(Default)]
struct Header {
    ino: u32,
    mode: u32,
    nlink: u32,
    rdev: (u32, u32),
}

fn write_entry<W: Write>(
    w: &mut Counting<'_, W>,
    ino: u32,
    path: &str,
    node: &Node,
) -> io::Result<()> {
    let mut header = Header {
        ino,
        nlink: 1,
        ..Header::default()
    };
    let data: &[u8] = match node {
        Node::Dir { mode } => {
            header.mode = S_IFDIR | mode;
            header.nlink = 2;
            &[]
        }
        Node::File { mode, bytes } => {
            header.mode = S_IFREG | mode;
            bytes
        }
        Node::Link { target } => {
            header.mode = S_IFLNK | 0o777;
            target.as_bytes()
        }
        Node::Char { mode, major, minor } => {
            header.mode = S_IFCHR | mode;
            header.rdev = (*major, *minor);
            &[]
        }
    };
    write_record(w, &header, path, data)
}

fn write_record<W: Write>(
    w: &mut Counting<'_, W>,
    h: &Header,
    name: &str,
    data: &[u8],
) -> io::Result<()> {
    let too_big = || io::Error::new(io::ErrorKind::InvalidInput, "entry over 4 GiB");
    let filesize = u32::try_from(data.len()).map_err(|_| too_big())?;
    let namesize = u32::try_from(name.len() + 1).map_err(|_| too_big())?;
    // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    let fields = [
        h.ino, h.mode, 0, 0, h.nlink, 0, filesize, 0, 0, h.rdev.0, h.rdev.1, namesize, 0,
    ];
    w.put(b"070701")?;
    for field in fields {
        w.put(format!("{field:08x}").as_bytes())?;
    }
    w.put(name.as_bytes())?;
    w.put(&[0])?;
    w.pad_to(4)?;
    w.put(data)?;
    w.pad_to(4)
}

struct Counting<'a, W> {
    out: &'a mut W,
    written: u64,
}

impl<W: Write> Counting<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn pad_to(&mut self, align: u64) -> io::Result<()> {
        let rest = (align - self.written % align) % align;
        for _ in 0..rest {
            self.put(&[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_is_sorted_padded_and_ends_with_the_trailer() {
        let mut a = Archive::default();
        a.file("usr/bin/x", 0o755, b"hello".to_vec());
        a.link("init", "there");
        let mut out = Vec::new();
        let n = a.write_to(&mut out).unwrap();
        assert_eq!((n, out.len() % 512), (out.len() as u64, 0));
        assert!(out.starts_with(b"070701"));
        let text = String::from_utf8_lossy(&out);
        let order: Vec<usize> = [
            "init\0",
            "usr\0",
            "usr/bin\0",
            "usr/bin/x\0",
            "TRAILER!!!\0",
        ]
        .iter()
        .map(|n| text.find(n).unwrap())
        .collect();
        assert!(order.is_sorted());
        let mut again = Vec::new();
        a.write_to(&mut again).unwrap();
        assert_eq!(out, again);
    }
}
