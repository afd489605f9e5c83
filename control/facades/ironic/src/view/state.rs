//! The states of a node.

use control_state::Machine;
use control_state::query::NodeState;
use serde_json::{Value, json};

use super::node_info::boot_mode;
use super::{power_state, text_or_null, time_or_null};

/// The text in place of an error that the policy hides from the caller.
const HIDDEN_ERROR: &str =
    "** Value Redacted - Requires baremetal:node:get:last_error permission. **";

/// The parts of a node's states that its machine does not have.
#[derive(Debug)]
pub(crate) struct ShownStates<'a> {
    /// The provision state.
    pub(crate) state: &'a NodeState,
    /// The power that an open order leads to.
    pub(crate) target_power_state: Value,
    /// `true` if the caller may read the reason of a failure.
    pub(crate) is_error_shown: bool,
}

/// The states of a node.
pub(crate) fn states(machine: &Machine, shown: ShownStates<'_>) -> Value {
    let state = shown.state;
    let last_error = match (state.error.as_str(), shown.is_error_shown) {
        ("", _) => Value::Null,
        (_, false) => HIDDEN_ERROR.into(),
        (error, true) => error.into(),
    };
    json!({
        "boot_mode": boot_mode(machine),
        "console_enabled": false,
        "last_error": last_error,
        "power_state": power_state(machine),
        "provision_state": state.state.as_str(),
        "provision_updated_at": time_or_null(state.since),
        "raid_config": {},
        "secure_boot": null,
        "target_power_state": shown.target_power_state,
        "target_provision_state": text_or_null(state.target.map_or("", |target| target.as_str())),
        "target_raid_config": {},
    })
}

#[cfg(test)]
mod tests {
    use control_state::ProvisionState;
    use proto_types::Timestamp;

    use super::*;
    use crate::access::SeenNode;

    #[test]
    fn states_of_nodes() {
        let node = SeenNode::of_json(
            json!({"bmc": {"power_state": "on"}, "hardware": {"firmware": "uefi"}}),
            None,
        );
        let state = NodeState {
            state: ProvisionState::CleanFailed,
            target: Some(ProvisionState::Available),
            since: Timestamp::from_ms(1_795_224_773_548),
            error: "disk sda".to_owned(),
        };
        for (is_error_shown, expected) in [(true, "disk sda"), (false, HIDDEN_ERROR)] {
            let shown = ShownStates {
                state: &state,
                target_power_state: Value::Null,
                is_error_shown,
            };
            let found = states(&node.machine, shown);
            assert_eq!(found["last_error"], expected);
            assert_eq!(found["provision_state"], "clean failed");
            assert_eq!(found["target_provision_state"], "available");
            assert_eq!(found["power_state"], "power on");
            assert_eq!(found["boot_mode"], "uefi");
            let at = "2026-11-21T01:32:53.548000+00:00";
            assert_eq!(found["provision_updated_at"], at);
        }
    }

    #[test]
    fn a_node_without_a_failure_hides_nothing() {
        let state = NodeState {
            state: ProvisionState::Available,
            target: None,
            since: Timestamp::ZERO,
            error: String::new(),
        };
        let shown = ShownStates {
            state: &state,
            target_power_state: "power off".into(),
            is_error_shown: false,
        };
        let found = states(&SeenNode::of_json(json!({}), None).machine, shown);
        for name in [
            "boot_mode",
            "last_error",
            "power_state",
            "provision_updated_at",
            "target_provision_state",
        ] {
            assert!(found[name].is_null(), "{name}");
        }
        assert_eq!(found["target_power_state"], "power off");
    }
}
