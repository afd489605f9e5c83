//! Parts of a host: the machine as it repeats it, and its reservation.

use proto_types::{PartitionId, ProjectId, SizeId, Timestamp};
use serde::{Deserialize, Serialize};

/// A machine as its host repeats it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenMachine {
    /// Partition. `None` means none.
    pub partition: Option<PartitionId>,
    /// Size. `None` means that none matches.
    pub size: Option<SizeId>,
    /// Rack. Empty means unknown.
    pub rack: String,
    /// `true` if nothing keeps the machine from being allocated.
    pub is_ready: bool,
}

/// The project that gets a released host back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReservation {
    /// The project.
    pub project: ProjectId,
    /// The key that its claim must name.
    pub key: String,
    /// Time from which everybody may get the host.
    pub until: Timestamp,
}
