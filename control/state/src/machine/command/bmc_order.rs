//! Commands that create, assign and delete orders to BMCs.

use std::collections::BTreeSet;

use proto_types::{MachineId, OrderId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::machine::entity::{BmcAction, BmcStream};

/// See [`Op::OrderBmc`](crate::Op::OrderBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderBmc {
    /// For which machine.
    pub machine: MachineId,
    /// Who must have it; anyone when an admin orders.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// What to do.
    pub action: BmcAction,
    /// Said about it, for the LED.
    #[serde(default)]
    pub description: String,
}

/// See [`Op::DeleteBmcOrder`](crate::Op::DeleteBmcOrder).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteBmcOrder {
    /// Which.
    pub id: OrderId,
}

/// See [`Op::TakeBmcOrder`](crate::Op::TakeBmcOrder).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeBmcOrder {
    /// Which.
    pub id: OrderId,
    /// The partition that the stream serves; must be the order's.
    pub partition: PartitionId,
    /// The stream that takes it.
    pub stream: BmcStream,
    /// Ids of the partition's streams that are open on that control node. Orders that others of its
    /// streams have taken are free again: those streams have ended.
    pub open: BTreeSet<Uuid>,
}
