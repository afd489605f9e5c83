//! Failures of a scheduled backup. All are retried.

use std::io;

use control_backup::MakeError;

/// The reason why no scheduled backup was made.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScheduledBackupError {
    /// The node stops. The next leader makes the backup.
    #[error("the node stops")]
    Stopped,
    /// The target failed.
    #[error("{step}")]
    Target {
        /// The step that failed.
        step: &'static str,
        /// The cause.
        source: BackupTargetError,
    },
    /// The backup cannot be made.
    #[error(transparent)]
    Make(#[from] MakeError),
}

impl ScheduledBackupError {
    /// A failure of the target at this step.
    pub(super) fn at(step: &'static str) -> impl Fn(BackupTargetError) -> Self {
        move |source| Self::Target { step, source }
    }
}

/// The reason why a backup target failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum BackupTargetError {
    /// A bucket, with an explanation that quotes nothing of the store's answer.
    #[error("{endpoint}: {problem}")]
    Bucket {
        /// URL of the store.
        endpoint: String,
        /// The fault, and how to correct it.
        problem: String,
    },
    /// A directory, through the store's interface.
    #[error(transparent)]
    Directory(#[from] object_store::Error),
    /// A directory that is read or cleaned.
    #[error(transparent)]
    Files(#[from] io::Error),
}
