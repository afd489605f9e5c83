//! Errors of the certificate authority.

use std::io;
use std::path::PathBuf;

use control_state::StateError;
use control_store::{ProposeError, StoreError};
use proto_identity::IdentityError;

/// An error of the certificate authority.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The caller is refused, with number and workaround.
    #[error(transparent)]
    Refused(#[from] StateError),
    /// The state cannot be read or written now.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key, request or certificate is unusable.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The sealing key cannot be read or made.
    #[error("sealing key {path}")]
    SealFile {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The authority in the state was sealed with another key than this node has.
    #[error(
        "the authority's keys cannot be unsealed: seal.key or data.key is not the one they were \
         sealed with. Restore both from the backup of the data directory"
    )]
    WrongSeal,
    /// The system has no randomness.
    #[error("the system gives no random bytes")]
    Randomness,
}

impl From<ProposeError<StateError>> for PkiError {
    fn from(e: ProposeError<StateError>) -> Self {
        match e {
            ProposeError::Rejected(e) => Self::Refused(e),
            ProposeError::Store(e) => Self::Store(e),
        }
    }
}
