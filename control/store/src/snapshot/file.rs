//! The files of a snapshot, each with its length and checksum.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk::DiskFile;

/// Default and largest size of a piece that is sent, and of a read while a file is checked, bytes.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotFile {
    /// Path within the snapshot: `META` or `state/<name>`.
    pub(crate) path: String,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// CRC-32 of the file.
    pub(crate) crc: u32,
}

/// Name and files of a snapshot. Equal manifests are equal snapshots, because the checksums are
/// part of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotManifest {
    /// Name of the snapshot, made of term and index.
    pub(crate) name: String,
    pub(crate) files: Vec<SnapshotFile>,
}

/// Returns length and checksum of a file; reads all of it.
pub(crate) fn measure(file: &dyn DiskFile) -> std::io::Result<(u64, u32)> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; PIECE_BYTES];
    let total = file.bytes()?;
    let mut at = 0;
    while at < total {
        let part = &mut buffer[..part_bytes(total - at)];
        file.read_at(part, at)?;
        hasher.update(part);
        at += part.len() as u64;
    }
    Ok((total, hasher.finalize()))
}

/// Returns the size of the next part to read when `left` bytes are left.
pub(super) fn part_bytes(left: u64) -> usize {
    usize::try_from(left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES))
}

/// Adds the path of the file to an error.
pub(crate) fn with_path(path: &Path, error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
