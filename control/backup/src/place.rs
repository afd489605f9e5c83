//! The state of a backup place.

use proto_types::Timestamp;

/// A target of scheduled backups, with the state of its backups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupPlace {
    /// Name of the target in messages.
    pub place: String,
    /// Time of the newest backup. `None` means that there is none, or that the target was not listed
    /// yet.
    pub newest: Option<Timestamp>,
    /// The error of the last attempt. Empty means that it succeeded.
    pub error: String,
    /// Interval between two backups, minutes.
    pub every_minutes: u64,
}
