//! Errors of snapshots on disk.

use std::path::PathBuf;

use crate::engine::EngineError;

/// A snapshot could not be made, found or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The state engine could not copy itself.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file operation failed.
    #[error("{action} snapshot {path}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// Directory or file of the operation.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// `META` is damaged.
    #[error("snapshot {path} is damaged: {reason}. Remove that directory to start without it")]
    Damaged {
        /// Directory of the snapshot.
        path: PathBuf,
        /// The damage that was found.
        reason: String,
    },
}

impl From<SnapshotError> for std::io::Error {
    fn from(error: SnapshotError) -> Self {
        Self::other(error)
    }
}
