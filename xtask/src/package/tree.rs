//! The files of a package or an image, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use md5::{Digest as _, Md5};

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeEntry {
    File { mode: u32, bytes: Vec<u8> },
    Link { target: String },
}

/// Files by path, without a slash in front. Directories are those that files are in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    entries: BTreeMap<String, TreeEntry>,
}

impl Tree {
    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        let entry = TreeEntry::File { mode, bytes };
        self.entries.insert(path.to_owned(), entry);
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        let target = target.to_owned();
        let entry = TreeEntry::Link { target };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Adds a compressed text, as Debian has manual pages and change logs: `.gz` is added to the path.
    pub(crate) fn compressed(&mut self, path: &str, text: &[u8]) -> io::Result<()> {
        self.file(&format!("{path}.gz"), 0o644, gzip(text)?);
        Ok(())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &TreeEntry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_str(), entry))
    }

    /// Every directory that a file is in, parents first.
    pub(crate) fn directories(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for path in self.entries.keys() {
            let slashes = path.match_indices('/');
            found.extend(slashes.map(move |(at, _)| &path[..at]));
        }
        found
    }

    /// The `md5sums` of a Debian package.
    pub(crate) fn md5sums(&self) -> String {
        let files = self.entries.iter().filter_map(|(path, entry)| match entry {
            TreeEntry::File { bytes, .. } => Some((path, Md5::digest(bytes))),
            TreeEntry::Link { .. } => None,
        });
        let lines = files.map(|(path, digest)| {
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}  {path}\n")
        });
        lines.collect()
    }

    /// Size on a disk, KiB: every file and directory begins one, as Debian counts.
    pub(crate) fn kib(&self) -> usize {
        let sizes = self.entries.values().map(|entry| match entry {
            TreeEntry::File { bytes, .. } => bytes.len().div_ceil(1024),
            TreeEntry::Link { .. } => 1,
        });
        sizes.sum::<usize>() + self.directories().len()
    }

    /// Writes the files below a directory.
    pub(crate) fn write_to(&self, root: &Path) -> Result<()> {
        for directory in self.directories() {
            let path = root.join(directory);
            fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
            // Else the umask of the caller would decide.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        for (path, entry) in &self.entries {
            let at = root.join(path);
            match entry {
                TreeEntry::Link { target } => symlink(target, &at),
                TreeEntry::File { mode, bytes } => fs::write(&at, bytes)
                    .and_then(|()| fs::set_permissions(&at, fs::Permissions::from_mode(*mode))),
            }
            .with_context(|| at.display().to_string())?;
        }
        Ok(())
    }
}

/// gzip without a name and a time, so that equal texts are equal files.
pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_directories_sums_and_modes() {
        let mut tree = Tree::default();
        tree.file("usr/bin/x", 0o755, "hello");
        tree.link("usr/bin/y", "x");
        tree.compressed("usr/share/doc/x/changelog", b"text")
            .unwrap();
        let directories: Vec<&str> = tree.directories().into_iter().collect();
        let expected = [
            "usr",
            "usr/bin",
            "usr/share",
            "usr/share/doc",
            "usr/share/doc/x",
        ];
        assert_eq!(directories, expected);
        let sums = tree.md5sums();
        assert!(
            sums.starts_with("5d41402abc4b2a76b9719d911017c592  usr/bin/x\n"),
            "{sums}"
        );
        assert_eq!(sums.lines().count(), 2, "a link has no sum");
        assert_eq!(tree.kib(), 3 + 5);
        let root = tempfile::tempdir().unwrap();
        tree.write_to(root.path()).unwrap();
        let program = root.path().join("usr/bin/y");
        assert_eq!(fs::read_to_string(&program).unwrap(), "hello");
        assert_eq!(
            fs::metadata(&program).unwrap().permissions().mode() & 0o777,
            0o755
        );
    }

    #[test]
    fn compressed_texts_do_not_tell_when_they_were_made() {
        assert_eq!(gzip(b"text").unwrap(), gzip(b"text").unwrap());
        assert_eq!(gzip(b"text").unwrap()[4..8], [0; 4]);
    }
}
