//! Reservations of machines of a size.

use std::collections::BTreeSet;

use proto_types::{PartitionId, ProjectId, ReservationId, SizeId};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// Machines set aside for a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeReservation {
    /// The key.
    pub id: ReservationId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Display name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// The project that the machines are reserved for.
    pub project: ProjectId,
    /// Size of the reserved machines.
    pub size: SizeId,
    /// Partitions in which machines are reserved; at least one.
    pub partitions: BTreeSet<PartitionId>,
    /// Number of machines in each partition, from 1.
    pub amount: u32,
}
