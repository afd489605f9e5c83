//! The error of making a backup.

use control_store::{StoreCodecError, StoreError};
use proto_backup::BackupError;

/// Maximum backups in progress on one node. Another one is refused with [`MakeError::Busy`].
pub const BACKUPS_MAX: usize = 2;

/// The reason why a backup could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The store cannot answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record of the state cannot be encoded.
    #[error(transparent)]
    Object(#[from] StoreCodecError),
    /// The backup cannot be written.
    #[error(transparent)]
    Write(#[from] BackupError),
    /// `BACKUPS_MAX` backups are in progress.
    #[error("{BACKUPS_MAX} backups are being made already")]
    Busy,
    /// The task that made the backup ended without a result.
    #[error("making the backup was interrupted")]
    Interrupted,
}
