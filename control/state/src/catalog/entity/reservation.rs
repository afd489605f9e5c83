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
    /// Head.
    pub meta: Meta,
    /// Shown name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// For whom.
    pub project: ProjectId,
    /// Size of the reserved machines.
    pub size: SizeId,
    /// Where; at least one.
    pub partitions: BTreeSet<PartitionId>,
    /// How many in each partition.
    pub amount: u32,
}
