//! What the process knows of where it runs, for those who look after it.

use std::fmt::Debug;

use control_backup::BackupPlace;
use proto_types::{PartitionId, Timestamp};

/// A revoked identity whose bearer still tries to come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// SPIFFE id.
    pub identity: String,
    /// How often.
    pub times: u64,
    /// When it tried last.
    pub last: Timestamp,
}

/// What was found at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Premises {
    /// Since when the process runs.
    pub started_at: Timestamp,
    /// Entries of the log after which a snapshot is made.
    pub snapshot_every: u64,
    /// Size of the disk that the data directory is on, bytes.
    pub disk_bytes: u64,
    /// What is free of it, bytes.
    pub disk_free_bytes: u64,
    /// End of the API's certificate.
    pub api_certificate_ends: Option<Timestamp>,
    /// Files that others than their owner may read or write, with their mode.
    pub exposed: Vec<String>,
    /// Whether backups are scheduled.
    pub has_schedule: bool,
    /// Where backups go, as far as this node keeps them supplied.
    pub backups: Vec<BackupPlace>,
    /// Partitions none of whose agents was heard lately.
    pub unobserved: Vec<PartitionId>,
    /// Who was turned away since the process began.
    pub turned_away: Vec<TurnedAway>,
}

/// Looks at where the process runs.
pub trait Surveyor: Debug + Send + Sync {
    /// What is found now; may read small files.
    fn look(&self) -> Premises;
}

/// Finds nothing; where no process is behind the services.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Surveyor for Nowhere {
    fn look(&self) -> Premises {
        Premises::default()
    }
}
