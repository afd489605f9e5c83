//! What sender and receiver of a snapshot say to each other.
//!
//! The sender lists the files with their checksums; the receiver answers how much of each it has
//! from an earlier attempt; the sender sends the rest in pieces and a last word; the receiver
//! verifies, installs and answers.

use std::path::Path;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::disk::DiskFile;
use crate::raft::types::Vote;
use crate::raft::wire::Installed;

/// Bytes of one piece.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Files of one snapshot.
pub(crate) const FILES_MAX: usize = 65_536;

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    /// Relative to the snapshot: `META` or `state/<name>`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) crc: u32,
}

/// The sender's first word.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) vote: Vote,
    /// The snapshot's name, by term and index.
    pub(crate) name: String,
    pub(crate) files: Vec<Listed>,
}

/// The receiver's answer to an offer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Wanted {
    /// Bytes of each file that are here already.
    From(Vec<u64>),
    /// Nothing: it follows another leader, or has as much already.
    Nothing(Installed),
}

/// What the sender sends then.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Piece {
    Data {
        /// Place of the file in the offer.
        file: usize,
        offset: u64,
        bytes: Bytes,
    },
    /// That was all.
    End,
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

/// Whether a listed path stays inside the snapshot.
pub(crate) fn is_inside(path: &str) -> bool {
    let plain = |name: &str| {
        !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
    };
    path == "META" || path.strip_prefix("state/").is_some_and(plain)
}

/// An error that names a file.
pub(crate) fn at(path: &Path, error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for good in ["META", "state/000012.sst", "state/CURRENT"] {
            assert!(is_inside(good), "{good}");
        }
        for bad in [
            "",
            "NODE",
            "state/",
            "state/..",
            "state/a/b",
            "../META",
            "/META",
            "state/\0",
        ] {
            assert!(!is_inside(bad), "{bad}");
        }
    }
}
