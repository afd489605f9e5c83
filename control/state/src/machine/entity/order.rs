//! Orders to BMCs: an outbox, kept until the agent reports how each ended.

use proto_types::{Digest, MachineId, OrderId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{BmcAction, BmcStream};

/// How many ended orders a machine keeps.
pub const ORDERS_KEPT_MAX: usize = 10;

/// How many open orders a machine may have; more are refused.
pub const ORDERS_OPEN_MAX: usize = 16;

/// How long an order is good by default, milliseconds.
pub const ORDER_DEADLINE_MS: u64 = 60_000;

/// How an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// Not ended yet.
    Open,
    /// Carried out.
    Done,
    /// Not carried out; `error` says why.
    Failed,
    /// Nobody answered in time.
    Expired,
    /// Overtaken by a change of plan.
    Cancelled,
}

/// Who waits for an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderPurpose {
    /// A person.
    User(String),
    /// The life cycle: the phase that gave it waits.
    Life,
    /// A machine that boots: it joins only with what the order puts into its BMC. No phase waits.
    Join,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcOrder {
    /// The key: a UUIDv7.
    pub id: OrderId,
    /// For which machine.
    pub machine: MachineId,
    /// Where that machine is: whose agent carries it out.
    pub partition: PartitionId,
    /// What to do.
    pub action: BmcAction,
    /// Who waits.
    pub purpose: OrderPurpose,
    /// Orders of one machine are carried out in this order.
    pub sequence: u64,
    /// How it stands.
    pub state: OrderState,
    /// Since when it is there.
    pub created_at: Timestamp,
    /// Not carried out after this.
    pub deadline: Timestamp,
    /// When it ended.
    #[serde(default)]
    pub finished_at: Option<Timestamp>,
    /// Why it was not carried out.
    #[serde(default)]
    pub error: Option<String>,
    /// The trace of the call that it follows from, a `traceparent`; the agent's work goes on with
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The stream on which an agent of the published stack has taken it: only that one carries it
    /// out. `None` means that none has, or that an agent of the mesh carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<BmcStream>,
    /// Of [`BmcAction::SetNonce`]: SHA-256 of what the BMC holds since the order's end; gone once a
    /// machine joined with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}
