//! The tar archives of container images: layers, and the layout that holds them.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::tree::{Tree, TreeEntry};
use crate::debs::sha256_hex;

/// Numeric user and group of the service in an image, and of the directory of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayerOwner(pub(crate) u64);

/// Directories that every image has. The last two are for what is mounted.
const DIRECTORIES: [&str; 7] = [
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "etc/metalmesh",
    "var/lib",
];

/// A layer with the files of a tree, not compressed. `data` is the service's directory, and its owner's.
pub(crate) fn layer(
    tree: &Tree,
    data: Option<&str>,
    owner: LayerOwner,
    epoch: u64,
) -> Result<Vec<u8>> {
    let mut directories: BTreeMap<String, (u64, u32)> = BTreeMap::new();
    let data = data.map(|path| path.trim_start_matches('/'));
    let wanted = DIRECTORIES.into_iter().chain(data);
    for path in wanted {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for directory in parents.chain([path]) {
            directories
                .entry(directory.to_owned())
                .or_insert((0, 0o755));
        }
    }
    for path in tree.directories() {
        directories.entry(path.to_owned()).or_insert((0, 0o755));
    }
    if let Some(data) = data {
        directories.insert(data.to_owned(), (owner.0, 0o700));
    }
    directories.insert("tmp".to_owned(), (0, 0o1777));
    let mut archive = tar::Builder::new(Vec::new());
    for (path, (uid, mode)) in directories {
        let mut header = header(tar::EntryType::Directory, mode, epoch);
        header.set_uid(uid);
        header.set_gid(uid);
        archive.append_data(&mut header, format!("{path}/"), std::io::empty())?;
    }
    for (path, entry) in tree.entries() {
        match entry {
            TreeEntry::File { mode, bytes } => {
                let mut header = header(tar::EntryType::Regular, *mode, epoch);
                header.set_size(u64::try_from(bytes.len())?);
                archive.append_data(&mut header, path, bytes.as_slice())?;
            }
            TreeEntry::Link { target } => {
                let mut header = header(tar::EntryType::Symlink, 0o777, epoch);
                archive.append_link(&mut header, path, target)?;
            }
        }
    }
    Ok(archive.into_inner()?)
}

fn header(kind: tar::EntryType, mode: u32, epoch: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(epoch);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

/// An image layout under construction.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    files: BTreeMap<String, Vec<u8>>,
}

impl Layout {
    pub(crate) fn file(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), bytes);
    }

    /// Adds a blob, and returns its descriptor.
    pub(crate) fn blob(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = sha256_hex(&bytes);
        let size = bytes.len();
        self.file(&format!("blobs/sha256/{digest}"), bytes);
        json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size })
    }

    /// The layout as one archive, which container engines load.
    pub(crate) fn archive(self, epoch: u64) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, bytes) in self.files {
            let mut header = header(tar::EntryType::Regular, 0o644, epoch);
            header.set_size(u64::try_from(bytes.len())?);
            archive.append_data(&mut header, path, bytes.as_slice())?;
        }
        Ok(archive.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_its_directories_first_and_the_data_belong_to_the_service() {
        let mut tree = Tree::default();
        tree.file("usr/bin/x", 0o755, "program");
        tree.link("lib", "usr/lib");
        let data = Some("/var/lib/metalmesh/x");
        let bytes = layer(&tree, data, LayerOwner(65_532), 7).unwrap();
        assert_eq!(bytes, layer(&tree, data, LayerOwner(65_532), 7).unwrap());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let header = entry.header();
            seen.push((path, header.mode().unwrap(), header.uid().unwrap()));
        }
        let at = |path: &str| {
            seen.iter()
                .position(|(own, _, _)| own.trim_end_matches('/') == path)
        };
        assert!(at("usr/bin") < at("usr/bin/x"), "{seen:?}");
        let (_, mode, uid) = &seen[at("var/lib/metalmesh/x").unwrap()];
        assert_eq!((*mode, *uid), (0o700, 65_532));
        let (_, mode, _) = &seen[at("tmp").unwrap()];
        assert_eq!(*mode, 0o1777);
        assert!(
            at("bin/sh").is_none() && at("usr/bin/sh").is_none(),
            "no shell"
        );
    }
}
