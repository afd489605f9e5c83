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
    /// Which.
    pub id: ReservationId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Where.
    #[serde(default)]
    pub partitions: Option<BTreeSet<PartitionId>>,
    /// How many in each partition.
    #[serde(default)]
    pub amount: Option<u32>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
