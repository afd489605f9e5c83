//! The end of a deployment: the machine is freed, wiped and on offer again.

use control_state::{FreeMachine, Machine, ProvisionState};
use proto_types::ProjectId;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::request::IronicCall;

/// Frees the machine of a node, by which the fields of its instance end.
///
/// # Errors
/// 409 for a machine that waits for an operator, or is locked.
pub(super) async fn undeploy(
    call: &IronicCall<'_>,
    node: &SeenNode,
    state: ProvisionState,
) -> Result<(), IronicError> {
    let project = freeing_project(&node.machine, state, call.caller.project())?;
    let op = FreeMachine {
        id: node.id(),
        project,
    };
    // The state ends the fields of the instance by the same command.
    call.propose(op).await.map(drop)
}

/// The project in whose name a machine is freed: the caller's, or for administrators the one that has
/// the machine, as they name it at the API of machines too.
///
/// # Errors
/// 409 for a machine of which an operator has to see first, and for one that serves a claim.
fn freeing_project(
    machine: &Machine,
    state: ProvisionState,
    caller: Option<ProjectId>,
) -> Result<Option<ProjectId>, IronicError> {
    let id = machine.id;
    if state == ProvisionState::Error {
        let reason = &machine.reason;
        return Err(IronicError::conflict(format!(
            "Node {id} is on its way from its last user, and is held ({reason}): an administrator lets \
             it go on with metalmesh machine set-state {id} available"
        )));
    }
    let allocation = machine.allocation.as_ref();
    if allocation.is_some_and(|allocation| allocation.claim.is_some()) {
        let text = format!("Node {id} serves a claim: delete the claim (metalmesh claim rm)");
        return Err(IronicError::conflict(text));
    }
    Ok(caller.or_else(|| allocation.map(|allocation| allocation.project)))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    const PROJECT: &str = "00000000-0000-0000-0000-00000000000a";

    #[test]
    fn machines_that_wait_for_an_operator_stay() {
        let held = json!({"phase": {"held": "bmc"}, "reason": "no BMC"});
        let node = SeenNode::of_json(held, None);
        let refused = freeing_project(&node.machine, ProvisionState::Error, None).unwrap_err();
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.text.contains("no BMC") && refused.text.contains("set-state"));
        let project: ProjectId = PROJECT.parse().unwrap();
        let named = freeing_project(&node.machine, ProvisionState::Active, Some(project));
        assert_eq!(named, Ok(Some(project)));
    }
}
