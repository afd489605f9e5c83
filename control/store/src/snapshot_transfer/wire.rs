//! Messages between the sender and the receiver of a snapshot.
//!
//! The sender offers the files with their checksums; the receiver answers with the bytes of each
//! that it has from an earlier attempt; the sender sends the rest in pieces, and an end mark; the
//! receiver verifies, installs and answers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::raft_types::Vote;
use crate::snapshot::file::SnapshotFile;
use crate::wire::Installed;

/// Bound of the files in an offer; the receiver refuses an offer with more.
pub(crate) const FILES_MAX: usize = 65_536;

/// The sender's first message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SnapshotOffer {
    /// Vote of the leader that sends the snapshot.
    pub(crate) vote: Vote,
    /// Name of the snapshot, made of term and index.
    pub(crate) name: String,
    /// Files of the snapshot, in the order in which they are sent.
    pub(crate) files: Vec<SnapshotFile>,
}

/// The receiver's answer to an offer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum OfferReply {
    /// Send the files from these offsets on: the receiver has the bytes before.
    From(Vec<u64>),
    /// Send nothing: the receiver follows another leader, or has applied these entries already.
    Nothing(Installed),
}

/// A message of the sender after the reply.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SnapshotPiece {
    /// Bytes of a file.
    Data {
        /// Position of the file in the offer.
        file: usize,
        /// Offset of the bytes in the file.
        offset: u64,
        bytes: Bytes,
    },
    /// All files are sent.
    End,
}

/// Returns `true` if a path from an offer stays inside the snapshot's directory. The receiver
/// creates files under these paths, so `..` in one would write anywhere in the data directory.
pub(crate) fn is_inside(path: &str) -> bool {
    let plain = |name: &str| {
        !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
    };
    path == "META" || path.strip_prefix("state/").is_some_and(plain)
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
