//! The command that ends an order to a BMC.

use proto_types::{Digest, OrderId, PartitionId};
use serde::{Deserialize, Serialize};

/// See [`Op::BmcOrderDone`](crate::Op::BmcOrderDone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BmcOrderDone {
    /// Which.
    pub id: OrderId,
    /// Where the agent is: must be the order's partition.
    pub partition: PartitionId,
    /// Why it was not carried out.
    #[serde(default)]
    pub error: Option<String>,
    /// Power as read after the order.
    #[serde(default)]
    pub power_state: Option<String>,
    /// Of [`BmcAction::SetNonce`]: SHA-256 of what the BMC holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}
