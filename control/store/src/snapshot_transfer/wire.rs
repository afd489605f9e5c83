//! What sender and receiver of a snapshot say to each other.
//!
//! The sender lists the files with their checksums; the receiver answers how much of each it has
//! from an earlier attempt; the sender sends the rest in pieces and a last word; the receiver
//! verifies, installs and answers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::raft_types::Vote;
use crate::snapshot::file::SnapshotFile;
use crate::wire::Installed;

/// Files of one snapshot.
pub(crate) const FILES_MAX: usize = 65_536;

/// The sender's first word.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SnapshotOffer {
    pub(crate) vote: Vote,
    /// The snapshot's name, by term and index.
    pub(crate) name: String,
    pub(crate) files: Vec<SnapshotFile>,
}

/// The receiver's answer to an offer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum OfferReply {
    /// Bytes of each file that are here already.
    From(Vec<u64>),
    /// Nothing: it follows another leader, or has as much already.
    Nothing(Installed),
}

/// What the sender sends then.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SnapshotPiece {
    Data {
        /// Place of the file in the offer.
        file: usize,
        offset: u64,
        bytes: Bytes,
    },
    /// That was all.
    End,
}

/// Whether a listed path stays inside the snapshot.
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
