//! The command that ends an order to a BMC.

use proto_types::{Digest, OrderId, PartitionId};
use serde::{Deserialize, Serialize};

/// See [`Op::BmcOrderDone`](crate::Op::BmcOrderDone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BmcOrderDone {
    /// The order.
    pub id: OrderId,
    /// Partition of the agent, which must be the order's.
    pub partition: PartitionId,
    /// The reason why it was not carried out. `None` or empty means success.
    #[serde(default)]
    pub error: Option<String>,
    /// Power state as read after the order; `None` if it was not read.
    #[serde(default)]
    pub power_state: Option<String>,
    /// For [`BmcAction::SetNonce`](crate::machine::entity::BmcAction::SetNonce): SHA-256 of the
    /// nonce that the BMC holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}
