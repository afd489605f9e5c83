//! The provision state of a node at a time.

use proto_types::Timestamp;

use crate::node::entity::ProvisionState;

/// The provision state of a node at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// The state.
    pub state: ProvisionState,
    /// The state that the node is on its way to. `None` means that it stays.
    pub target: Option<ProvisionState>,
    /// Time at which it entered the state, as far as it is known.
    pub since: Timestamp,
    /// The reason of a failure; empty in states that are none.
    pub error: String,
}

impl NodeState {
    /// A state without a failure, on the way that the table says.
    pub(super) const fn new(state: ProvisionState, since: Timestamp) -> Self {
        Self {
            state,
            target: state.target(),
            since,
            error: String::new(),
        }
    }

    /// The same state with the reason of a failure.
    pub(super) fn failed(self, error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            ..self
        }
    }

    /// The same state on the way back to `manageable`, as after a verb of the manageable side.
    pub(super) fn then_manageable(self) -> Self {
        Self {
            target: Some(ProvisionState::Manageable),
            ..self
        }
    }
}
