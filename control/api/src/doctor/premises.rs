//! The facts that a [`Surveyor`](super::Surveyor) collects.

use control_backup::BackupPlace;
use proto_types::{PartitionId, Timestamp};

/// A revoked identity whose bearer still tries to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// SPIFFE id.
    pub identity: String,
    /// Number of refused connections since the process started.
    pub times: u64,
    /// Time of the last refused connection.
    pub last: Timestamp,
}

/// Facts about the process and its machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Premises {
    /// Start of the process.
    pub started_at: Timestamp,
    /// Interval of snapshots, entries of the log.
    pub snapshot_every: u64,
    /// Size of the disk that the data directory is on, bytes.
    pub disk_bytes: u64,
    /// Free space of that disk, bytes.
    pub disk_free_bytes: u64,
    /// Expiry of the API's certificate. `None` means that the API has none or that it cannot be
    /// read.
    pub api_certificate_ends: Option<Timestamp>,
    /// Secret files that others than their owner may read or write, with their mode.
    pub exposed: Vec<String>,
    /// `true` if the configuration schedules backups.
    pub has_schedule: bool,
    /// Destinations that this node writes backups to.
    pub backups: Vec<BackupPlace>,
    /// Partitions of which no agent was heard recently.
    pub unobserved: Vec<PartitionId>,
    /// Revoked identities that were refused since the process started.
    pub turned_away: Vec<TurnedAway>,
}
