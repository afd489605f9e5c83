//! Errors of opening and reading the log.

use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// A file operation failed.
    #[error("{action} {path}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Synced bytes are damaged; acknowledged writes may be among them.
    #[error(
        "the raft log {path} is damaged at byte {offset}: {reason}. Nothing was changed. \
         The damaged part had been acknowledged, so it is not cut: restore this data directory \
         from a backup, or, when other members of the cluster are healthy, empty it and join \
         again under a new node id. Do not delete or edit this file alone"
    )]
    Corrupt {
        /// The damaged segment.
        path: PathBuf,
        /// Offset at which the damage begins.
        offset: usize,
        /// The corruption found at this offset.
        reason: String,
    },
    /// An intact record has a kind that this build does not know.
    #[error(
        "the raft log {path} has a record of unknown kind {kind} at byte {offset}: a newer \
         program wrote it. Nothing was changed: start the newer metalmeshd that this node had"
    )]
    Newer {
        /// The segment.
        path: PathBuf,
        /// Offset of the record.
        offset: usize,
        /// Number of the record's kind.
        kind: u8,
    },
    /// The segment was written by another cluster or node.
    #[error(
        "the raft log {path} belongs to cluster {cluster}, node {node}, not to this data \
         directory: data directories cannot be mixed. Put the right log back"
    )]
    Foreign {
        /// The foreign segment.
        path: PathBuf,
        /// Cluster that wrote it.
        cluster: Uuid,
        /// Node that wrote it.
        node: u64,
    },
}

/// Names the operation and the file of an I/O error.
pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> WalError {
    WalError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}
