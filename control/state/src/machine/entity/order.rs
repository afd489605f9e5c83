//! Orders to BMCs: an outbox, kept until the agent reports how each ended.

use proto_types::{Digest, MachineId, OrderId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{BmcAction, BmcStream};

/// Most ended orders kept per machine; beyond it the oldest are deleted.
pub const ORDERS_KEPT_MAX: usize = 10;

/// Most open orders per machine; a user's further ones are refused.
pub const ORDERS_OPEN_MAX: usize = 16;

/// Life of an open order, milliseconds. Beyond it the order expires, and its life-cycle step is
/// tried again.
pub const ORDER_DEADLINE_MS: u64 = 60_000;

/// State of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// It has not ended yet.
    Open,
    /// It was carried out.
    Done,
    /// It was not carried out; `error` says why.
    Failed,
    /// No agent answered in time.
    Expired,
    /// It was withdrawn, by a user or by the next step of the life cycle.
    Cancelled,
}

/// Origin of an order, which waits for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderPurpose {
    /// A user, by name.
    User(String),
    /// The life cycle: the machine's phase waits.
    Life,
    /// A booting machine, which joins only with the nonce that the order puts into its BMC. No
    /// phase waits.
    Join,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcOrder {
    /// Id, a UUIDv7; the key.
    pub id: OrderId,
    /// The machine.
    pub machine: MachineId,
    /// Partition of the machine, whose agent carries the order out.
    pub partition: PartitionId,
    /// The action.
    pub action: BmcAction,
    /// The origin.
    pub purpose: OrderPurpose,
    /// Sequence number: orders of one machine are carried out in its order.
    pub sequence: u64,
    /// The state.
    pub state: OrderState,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time after which it is not carried out.
    pub deadline: Timestamp,
    /// Time of its end; `None` while it is open.
    #[serde(default)]
    pub finished_at: Option<Timestamp>,
    /// The reason why it was not carried out; `None` if it was, or while it is open.
    #[serde(default)]
    pub error: Option<String>,
    /// `traceparent` of the call that caused it, with which the agent goes on. `None` means not
    /// traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The stream on which an agent of the published stack took it; only that one carries it out.
    /// `None` means that it is not taken, or that an agent of Metalmesh carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<BmcStream>,
    /// For [`BmcAction::SetNonce`]: SHA-256 of the nonce that the BMC holds since the order's end.
    /// `None` before, and once a machine joined with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
    /// Epoch of the pool host at the time of the order; 0 for machines that are in no pool. An order
    /// of an earlier epoch is not sent.
    #[serde(default, skip_serializing_if = "crate::machine::entity::is_zero")]
    pub epoch: u64,
}
