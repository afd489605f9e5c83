//! Errors of the state engine.

use std::path::PathBuf;

use crate::codec::StoreCodecError;

/// The state engine failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// RocksDB reported an error.
    #[error("{action} the state in {path}")]
    Rocks {
        /// The operation that failed.
        action: &'static str,
        /// Directory of the state.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rocksdb::Error,
    },
    /// A file operation failed.
    #[cfg(feature = "sim")]
    #[error("{action} {path}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// File of the operation.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A stored value is unreadable.
    #[error("the state in {path} holds an unreadable value under {key}")]
    Value {
        /// Directory of the state.
        path: PathBuf,
        /// Key of the value; bytes that are not text are escaped.
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
