//! The effect of a verb.

use control_state::{BmcAction, Machine, NodeStage, ProvisionState};
use proto_types::Timestamp;

/// The effect of a verb, in the order in which it is carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct VerbPlan {
    /// `true` if the disks are wiped.
    pub(super) wipes: bool,
    /// Orders to the BMC.
    pub(super) orders: Vec<BmcAction>,
    /// The state that the node is left in. `None` means the one that the phase of its machine says.
    pub(super) stage: Option<ProvisionState>,
    /// The reason of a state of failure; empty otherwise.
    pub(super) error: &'static str,
}

impl VerbPlan {
    /// A plan that leaves the node in a state and does nothing else.
    pub(super) fn stays(stage: ProvisionState) -> Self {
        Self {
            stage: Some(stage),
            ..Self::default()
        }
    }

    /// A plan that leaves the node in a state of failure.
    pub(super) fn failed(stage: ProvisionState, error: &'static str) -> Self {
        Self {
            error,
            ..Self::stays(stage)
        }
    }

    /// The stage of the node's record after it.
    pub(super) fn node_stage(&self, machine: &Machine, now: Timestamp) -> Option<NodeStage> {
        self.stage.map(|state| NodeStage {
            state,
            since: now,
            boot_id: machine.boot_id.clone(),
            phase_since: machine.since,
            error: self.error.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::access::SeenNode;

    #[test]
    fn a_stage_says_what_was_seen_of_the_machine() {
        let node = SeenNode::of_json(json!({"boot_id": "b1"}), None);
        let plan = VerbPlan::failed(ProvisionState::AdoptFailed, "why");
        let now = Timestamp::from_ms(5000);
        let stage = plan.node_stage(&node.machine, now).unwrap();
        let expected = NodeStage {
            state: ProvisionState::AdoptFailed,
            since: now,
            boot_id: "b1".to_owned(),
            phase_since: Timestamp::from_ms(1000),
            error: "why".to_owned(),
        };
        assert_eq!(stage, expected);
        assert_eq!(VerbPlan::default().node_stage(&node.machine, now), None);
    }
}
