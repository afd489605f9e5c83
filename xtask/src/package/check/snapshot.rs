//! The files and accounts of a system, and what two moments of it differ in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::debs::sha256_hex;

/// Files that dpkg and the tools of accounts write for themselves, and file systems of the kernel.
const IGNORED: [&str; 11] = [
    "dev",
    "etc/group-",
    "etc/gshadow-",
    "etc/ld.so.cache",
    "etc/passwd-",
    "etc/shadow-",
    "etc/.pwd.lock",
    "proc",
    "sys",
    "var/cache",
    "var/log",
];
/// Files of accounts, compared line by line.
const ACCOUNTS: [&str; 4] = ["etc/passwd", "etc/group", "etc/shadow", "etc/gshadow"];
/// Groups of other packages, FRR and the TPM's, which stay: those may have been installed since.
const SHARED_GROUPS: [&str; 3] = ["frr:", "frrvty:", "tss:"];

/// Descriptions of files by path: kind, mode, owner, content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    entries: BTreeMap<String, String>,
}

impl Snapshot {
    /// Looks at everything below a directory.
    pub(super) fn of(root: &Path) -> Result<Self> {
        let mut snapshot = Self::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let path = root.join(&folder);
            for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let relative = match folder.is_empty() {
                    true => name,
                    false => format!("{folder}/{name}"),
                };
                if is_ignored(&relative) {
                    continue;
                }
                if snapshot.add(&relative, &entry.path())? {
                    folders.push(relative);
                }
            }
        }
        Ok(snapshot)
    }

    /// Adds a file; `true` if it is a directory.
    fn add(&mut self, relative: &str, path: &Path) -> Result<bool> {
        let metadata = fs::symlink_metadata(path)?;
        let kind = metadata.file_type();
        if ACCOUNTS.contains(&relative) {
            for line in fs::read_to_string(path)?.lines() {
                if !SHARED_GROUPS.iter().any(|group| line.starts_with(group)) {
                    self.entries
                        .insert(format!("{relative}: {line}"), String::new());
                }
            }
            return Ok(false);
        }
        let content = if kind.is_symlink() {
            fs::read_link(path)?.display().to_string()
        } else if kind.is_file() {
            sha256_hex(&fs::read(path)?)
        } else if kind.is_dir() {
            "directory".to_owned()
        } else if kind.is_socket() {
            "socket".to_owned()
        } else {
            "device".to_owned()
        };
        let owner = format!("{}:{}", metadata.uid(), metadata.gid());
        let mode = metadata.permissions().mode();
        let description = format!("{mode:o} {owner} {content}");
        self.entries.insert(relative.to_owned(), description);
        Ok(kind.is_dir())
    }

    /// Differences to an earlier moment, a line each: new, changed and gone.
    pub(super) fn since(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, description) in &self.entries {
            match before.entries.get(path) {
                None => lines.push(format!("new: {path}")),
                Some(old) if old != description => lines.push(format!("changed: {path}")),
                Some(_) => {}
            }
        }
        let gone = before.entries.keys();
        let gone = gone.filter(|path| !self.entries.contains_key(*path));
        lines.extend(gone.map(|path| format!("gone: {path}")));
        lines
    }
}

/// `true` for what dpkg keeps of its own: everything below var/lib/dpkg but the packages' states, which
/// the caller asks dpkg for.
fn is_ignored(path: &str) -> bool {
    path.starts_with("var/lib/dpkg/") || IGNORED.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_changed_and_gone_files_and_accounts_are_named() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("etc/passwd", "root:x:0:0\n");
        write("etc/group", "root:x:0:\n");
        write("etc/kept", "text");
        write("etc/gone", "text");
        write("var/lib/dpkg/status", "one");
        let before = Snapshot::of(root.path()).unwrap();
        assert!(before.since(&before).is_empty());
        write("etc/passwd", "root:x:0:0\nmetalmesh:x:999:999\n");
        write("etc/group", "root:x:0:\nfrrvty:x:100:\n");
        write("etc/kept", "other");
        write("var/lib/dpkg/status", "two");
        write("var/lib/metalmesh/data", "data");
        fs::remove_file(root.path().join("etc/gone")).unwrap();
        let now = Snapshot::of(root.path()).unwrap();
        assert_eq!(
            now.since(&before),
            [
                "changed: etc/kept",
                "new: etc/passwd: metalmesh:x:999:999",
                "new: var/lib/metalmesh",
                "new: var/lib/metalmesh/data",
                "gone: etc/gone",
            ]
        );
    }
}
