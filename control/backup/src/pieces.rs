//! A backup in progress.

use bytes::Bytes;
use proto_backup::Summary;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use crate::MakeError;

/// The summary of a complete backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Revision of the state.
    pub revision: u64,
    /// Numbers of rows and bytes.
    pub summary: Summary,
}

/// A backup in progress.
#[derive(Debug)]
pub struct BackupPieces {
    /// The pieces in order. The channel closes when the backup is complete or has failed.
    pub bytes: Receiver<Bytes>,
    /// The result, available once `bytes` is closed.
    pub outcome: JoinHandle<Result<Made, MakeError>>,
}
