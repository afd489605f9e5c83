//! The files of a snapshot, each known by its length and checksum.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk::DiskFile;

/// Bytes of one piece.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotFile {
    /// Relative to the snapshot: `META` or `state/<name>`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) crc: u32,
}

/// Length and checksum of a file.
pub(crate) fn measure(file: &dyn DiskFile) -> std::io::Result<(u64, u32)> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; PIECE_BYTES];
    let total = file.bytes()?;
    let mut at = 0;
    while at < total {
        let left = usize::try_from(total - at).unwrap_or(usize::MAX);
        let part = &mut buffer[..left.min(PIECE_BYTES)];
        file.read_at(part, at)?;
        hasher.update(part);
        at += part.len() as u64;
    }
    Ok((total, hasher.finalize()))
}

/// An error that names a file.
pub(crate) fn at(path: &Path, error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
