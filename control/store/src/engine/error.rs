//! Errors of the state engine.

use std::path::PathBuf;

use crate::codec::StoreCodecError;

/// The state engine failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// RocksDB says so.
    #[error("{action} the state in {path}")]
    Rocks {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rocksdb::Error,
    },
    /// A file operation failed.
    #[cfg(feature = "sim")]
    #[error("{action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A stored value is unreadable.
    #[error("the state in {path} holds an unreadable value under {key}")]
    Value {
        /// Where.
        path: PathBuf,
        /// Which, readable as far as it can be.
        key: String,
        /// The cause.
        #[source]
        source: StoreCodecError,
    },
    /// The store was shut down.
    #[error("the state engine is closed")]
    Closed,
}

impl From<EngineError> for std::io::Error {
    fn from(error: EngineError) -> Self {
        Self::other(error)
    }
}
