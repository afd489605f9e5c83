//! The end of a deployment: the machine is freed, wiped and on offer again.

use control_state::{FreeMachine, Machine, NodeContent, ProvisionState, SetNode};
use http::StatusCode;
use proto_types::ProjectId;

use crate::access::{SeenNode, find_node};
use crate::error::IronicError;
use crate::request::IronicCall;

/// Most attempts to write the node after its release, while others write it too.
const ATTEMPTS_MAX: usize = 3;

/// Frees the machine of a node, and clears the fields of its instance.
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
    call.propose(op).await?;
    // The machine is free by now, whatever comes of the fields.
    if let Err(error) = forget_instance(call, node).await {
        tracing::warn!(node = %node.id(), error = %error.text, "an instance's fields stay");
    }
    Ok(())
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

/// Clears the fields of the instance, as Ironic does. The next user must not get the networks or the
/// wishes of the last one.
async fn forget_instance(call: &IronicCall<'_>, node: &SeenNode) -> Result<(), IronicError> {
    let ident = node.id().to_string();
    for attempt in 1..=ATTEMPTS_MAX {
        // Read again, and not as the caller sees it: the project may not see the machine any more.
        let found = call.read(|tables| Ok(find_node(tables, &ident))).await?;
        let Some((found, content)) = found.and_then(|found| {
            let content = without_instance(found.content())?;
            Some((found, content))
        }) else {
            return Ok(());
        };
        let op = SetNode {
            machine: found.id(),
            expected: found.generation(),
            content,
        };
        match call.propose(op).await {
            Err(error) if error.status == StatusCode::CONFLICT && attempt < ATTEMPTS_MAX => {}
            ended => return ended.map(drop),
        }
    }
    Ok(())
}

/// The fields without those of the instance. `None` means that there are none.
fn without_instance(content: NodeContent) -> Option<NodeContent> {
    let cleared = NodeContent {
        instance_info: Default::default(),
        instance_name: String::new(),
        instance: None,
        vifs: Default::default(),
        stage: None,
        ..content.clone()
    };
    (cleared != content).then_some(cleared)
}

#[cfg(test)]
mod tests {
    use control_state::{NodeStage, NodeVif};
    use proto_types::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const PROJECT: &str = "00000000-0000-0000-0000-00000000000a";

    #[test]
    fn the_fields_of_an_instance_are_cleared() {
        let stage = NodeStage {
            state: ProvisionState::ServiceFailed,
            since: Timestamp::ZERO,
            boot_id: String::new(),
            phase_since: Timestamp::ZERO,
            error: String::new(),
        };
        let vif = NodeVif {
            network: None,
            mac: None,
        };
        let own = NodeContent {
            name: Some("n".to_owned()),
            extra: [("a".to_owned(), "1".to_owned())].into(),
            ..NodeContent::default()
        };
        let used = NodeContent {
            instance_info: [("image_source".to_owned(), "\"x\"".to_owned())].into(),
            instance_name: "web".to_owned(),
            instance: Some(Uuid::from_u128(1)),
            vifs: [("v".to_owned(), vif)].into(),
            stage: Some(stage),
            ..own.clone()
        };
        assert_eq!(without_instance(used), Some(own.clone()));
        assert_eq!(without_instance(own), None);
    }

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
