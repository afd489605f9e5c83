//! Power.

use control_state::query::node_state;
use control_state::{BmcAction, ProvisionState};
use http::StatusCode;
use serde_json::Value;

use super::orders::{accepted, order};
use super::refusals::{invalid_state, unsupported};
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{power_state, stored};

/// Fields of a request.
const FIELDS: [&str; 2] = ["target", "timeout"];

/// `PUT /nodes/{node}/states/power`.
pub(super) fn set<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:set_power_state").await?;
        let state = node_state(&node.machine, node.record.as_deref(), call.now());
        let action = wanted(call.body, &node, state.state)?;
        order(call, &node, action).await?;
        Ok(accepted(call))
    })
}

/// The action that a request asks for.
///
/// # Errors
/// 400 for a malformed request, for a soft change of the power, which agents cannot make, and while the
/// node is cleaned; 409 for the end of power that must not be.
fn wanted(body: &Value, node: &SeenNode, state: ProvisionState) -> Result<BmcAction, IronicError> {
    let reader = ObjectReader::new(body);
    reader.check_known(&FIELDS)?;
    check_timeout(reader.value("timeout"))?;
    let target = reader.text("target")?.unwrap_or_default();
    let action = match target {
        "power on" => BmcAction::PowerOn,
        "power off" => BmcAction::PowerOff,
        // A cycle and no reset: it powers on a machine that is off, as Ironic does.
        "rebooting" => BmcAction::PowerCycle,
        "soft power off" | "soft rebooting" => return Err(unsupported(node, target)),
        other => {
            let shown = power_state(&node.machine);
            let shown = shown.as_str().unwrap_or("None");
            return Err(invalid_state(other, node.id(), shown));
        }
    };
    if matches!(state, ProvisionState::Cleaning | ProvisionState::CleanWait) {
        return Err(invalid_state(target, node.id(), state.as_str()));
    }
    if action == BmcAction::PowerOff && stored(node).disable_power_off {
        let text = format!(
            "Failed to set node power state to {target}: the node's disable_power_off is set."
        );
        return Err(IronicError::new(StatusCode::CONFLICT, text));
    }
    Ok(action)
}

/// Refuses a timeout that is none. Orders have a deadline of their own.
fn check_timeout(timeout: &Value) -> Result<(), IronicError> {
    let seconds = match timeout {
        Value::Null => return Ok(()),
        Value::String(text) => text.parse::<u64>().ok(),
        other => other.as_u64(),
    };
    match seconds {
        Some(1..) => Ok(()),
        _ => Err(IronicError::invalid("timeout has to be positive integer")),
    }
}

#[cfg(test)]
mod tests {
    use control_state::NodeContent;
    use serde_json::json;

    use super::*;

    fn node(disable_power_off: bool) -> SeenNode {
        let content = NodeContent {
            disable_power_off,
            ..NodeContent::default()
        };
        SeenNode::of_json(json!({}), Some(content))
    }

    #[test]
    fn targets_and_their_orders() {
        let active = ProvisionState::Active;
        for (body, state, expected) in [
            (
                json!({"target": "power on"}),
                active,
                Ok(BmcAction::PowerOn),
            ),
            (
                json!({"target": "power off"}),
                active,
                Ok(BmcAction::PowerOff),
            ),
            (
                json!({"target": "rebooting", "timeout": 5}),
                active,
                Ok(BmcAction::PowerCycle),
            ),
            (
                json!({"target": "power on", "timeout": null}),
                ProvisionState::Enroll,
                Ok(BmcAction::PowerOn),
            ),
            (
                json!({"target": "soft power off"}),
                active,
                Err("does not support soft power off"),
            ),
            (
                json!({"target": "soft rebooting"}),
                active,
                Err("does not support soft rebooting"),
            ),
            (json!({"target": "power"}), active, Err("in state \"None\"")),
            (json!({}), active, Err("in state \"None\"")),
            (json!({"target": 1}), active, Err("target: must be a text")),
            (
                json!({"target": "power on", "timeout": 0}),
                active,
                Err("positive integer"),
            ),
            (
                json!({"target": "power on", "timeout": "x"}),
                active,
                Err("positive integer"),
            ),
            (
                json!({"target": "power on", "force": 1}),
                active,
                Err("'force' was unexpected"),
            ),
            (Value::Null, active, Err("must be a JSON object")),
            (
                json!({"target": "power off"}),
                ProvisionState::Cleaning,
                Err("while it is in state \"cleaning\""),
            ),
            (
                json!({"target": "power on"}),
                ProvisionState::CleanWait,
                Err("while it is in state \"clean wait\""),
            ),
        ] {
            match (wanted(&body, &node(false), state), expected) {
                (Ok(action), Ok(expected)) => assert_eq!(action, expected, "{body}"),
                (Err(refused), Err(part)) => {
                    assert!(refused.text.contains(part), "{body}: {}", refused.text);
                    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
                }
                (found, _) => panic!("{body}: {found:?}"),
            }
        }
    }

    #[test]
    fn power_that_must_not_end() {
        let active = ProvisionState::Active;
        for (target, is_accepted) in [
            ("power off", false),
            ("rebooting", true),
            ("power on", true),
        ] {
            let found = wanted(&json!({ "target": target }), &node(true), active);
            assert_eq!(found.is_ok(), is_accepted, "{target}");
        }
    }
}
