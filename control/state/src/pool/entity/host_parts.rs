//! Parts of a host: the machine as it repeats it, and its reservation.

use std::collections::BTreeSet;

use proto_types::{PartitionId, ProjectId, SizeId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::WipeLevel;

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
    /// Strength of the wipe that is enough for the project, as far as the pool allows less than its
    /// floor. `None` means the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wipe: Option<WipeLevel>,
    /// Serial numbers of the disks that the claim had. With another disk in the host, which may hold
    /// anybody's data, the floor counts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub disks: BTreeSet<String>,
}
