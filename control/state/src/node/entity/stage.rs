//! The part of a node's provision state that the machine's phase does not say.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::node::entity::ProvisionState;

/// A provision state that a client's verb brought the node into, and what was seen of the machine at
/// that time: the state ends when the machine has moved on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStage {
    /// The state.
    pub state: ProvisionState,
    /// Time of the verb.
    pub since: Timestamp,
    /// The machine's boot id at that time; empty if it had none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// Time at which the machine had entered its phase.
    pub phase_since: Timestamp,
    /// The reason of a failure; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}
