//! Commands that create, assign and delete orders to BMCs.

use std::collections::BTreeSet;

use proto_types::{MachineId, OrderId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::machine::entity::{BmcAction, BmcStream};

/// See [`Op::OrderBmc`](crate::Op::OrderBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderBmc {
    /// The machine.
    pub machine: MachineId,
    /// The project that must have it. `None` means an admin's order, whoever has the machine.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// The project that must have it, or be the one that may get it while nobody has it. `None` asks
    /// for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<ProjectId>,
    /// The action.
    pub action: BmcAction,
    /// Description, kept with the LED; other actions ignore it.
    #[serde(default)]
    pub description: String,
}

/// See [`Op::DeleteBmcOrder`](crate::Op::DeleteBmcOrder).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteBmcOrder {
    /// The order.
    pub id: OrderId,
}

/// See [`Op::TakeBmcOrder`](crate::Op::TakeBmcOrder).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeBmcOrder {
    /// The order.
    pub id: OrderId,
    /// The partition that the stream serves, which must be the order's.
    pub partition: PartitionId,
    /// The stream that takes it.
    pub stream: BmcStream,
    /// Ids of the partition's streams that are open on that control node. Orders taken by its other
    /// streams are free again, because those streams have ended.
    pub open: BTreeSet<Uuid>,
}
