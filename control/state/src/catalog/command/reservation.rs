//! Commands about reservations.

use std::collections::BTreeSet;

use proto_types::{PartitionId, ReservationId};
use serde::{Deserialize, Serialize};

use crate::catalog::entity::SizeReservation;
use crate::meta::{LabelsUpdate, Lock};

/// A whole entity; of its head only the labels count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateSizeReservation(pub SizeReservation);

/// Deletes the one of this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteSizeReservation(pub ReservationId);

/// See [`Op::UpdateSizeReservation`](crate::Op::UpdateSizeReservation). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSizeReservation {
    /// The reservation to change.
    pub id: ReservationId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// All partitions in which machines are reserved; at least one.
    #[serde(default)]
    pub partitions: Option<BTreeSet<PartitionId>>,
    /// Number of machines in each partition, from 1.
    #[serde(default)]
    pub amount: Option<u32>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
