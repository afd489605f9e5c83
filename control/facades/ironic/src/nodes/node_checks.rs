//! Changes that the state of a node does not allow.

use control_state::query::NodeState;
use control_state::{Availability, NodeContent, ProvisionState};
use proto_types::ProjectId;

use super::node_draft::NodeDraft;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::patch::JsonPatch;
use crate::view::{instance_uuid, maintenance_reason, stored};

/// States on the way to another one in which a node may be changed.
const CHANGEABLE_STATES: [ProvisionState; 12] = [
    ProvisionState::AdoptFailed,
    ProvisionState::CleanFailed,
    ProvisionState::DeployFailed,
    ProvisionState::Error,
    ProvisionState::InspectFailed,
    ProvisionState::InspectWait,
    ProvisionState::Inspecting,
    ProvisionState::RescueFailed,
    ProvisionState::ServiceFailed,
    ProvisionState::ServiceHold,
    ProvisionState::UnrescueFailed,
    ProvisionState::Verifying,
];
/// States in which a node that has a class may get another one.
const CLASS_STATES: [ProvisionState; 5] = [
    ProvisionState::Available,
    ProvisionState::Enroll,
    ProvisionState::InspectWait,
    ProvisionState::Inspecting,
    ProvisionState::Manageable,
];
/// States in which a node may be protected.
const PROTECTED_STATES: [ProvisionState; 2] = [ProvisionState::Active, ProvisionState::Rescue];
/// States in which a node may be deleted.
const DELETABLE_STATES: [ProvisionState; 4] = [
    ProvisionState::AdoptFailed,
    ProvisionState::Available,
    ProvisionState::Enroll,
    ProvisionState::Manageable,
];

/// Refuses a change of a node that is on its way to another state.
///
/// # Errors
/// 409.
pub(super) fn check_is_changeable(
    node: &SeenNode,
    state: &NodeState,
    patch: &JsonPatch,
) -> Result<(), IronicError> {
    let is_maintained = maintenance_reason(node).is_some();
    // As in Ironic: the way out of a deployment that is stuck.
    if is_maintained && patch.only_removes("instance_uuid") {
        return Ok(());
    }
    let id = node.id();
    if state.target.is_some() && !CHANGEABLE_STATES.contains(&state.state) {
        let text = format!("Node {id} can not be updated while a state transition is in progress.");
        return Err(IronicError::conflict(text));
    }
    if state.state == ProvisionState::Inspecting {
        let state = state.state.as_str();
        let text = format!("Cannot update node \"{id}\" while it is in state \"{state}\".");
        return Err(IronicError::conflict(text));
    }
    Ok(())
}

/// Refuses fields that the node's state does not allow. `caller` is the project that wants them; `None`
/// means an administrator.
///
/// # Errors
/// 409, which names the field.
pub(super) fn check_draft(
    node: &SeenNode,
    state: &NodeState,
    draft: &NodeDraft,
    caller: Option<ProjectId>,
) -> Result<(), IronicError> {
    let before = stored(node);
    check_flags(before, state, draft)?;
    if draft.is_maintained != maintenance_reason(node).is_some() {
        check_may_withhold(node, caller)?;
    }
    let class = node.machine.capability.resource_class.as_ref();
    let is_other_class = class.is_some() && class != draft.resource_class.as_ref();
    if is_other_class && !CLASS_STATES.contains(&state.state) {
        return Err(wrong_state(state, "another resource_class"));
    }
    let is_locked = node.machine.condition.state == Availability::Locked;
    if is_locked && !draft.is_maintained {
        return Err(locked(node));
    }
    if node.machine.tenure.reserved_by.is_some() && draft.instance != instance_uuid(node) {
        let id = node.id();
        let text = format!(
            "instance_uuid: node {id} is held by an allocation, whose id it is: delete the allocation \
             instead"
        );
        return Err(IronicError::conflict(text));
    }
    Ok(())
}

fn check_flags(
    before: &NodeContent,
    state: &NodeState,
    draft: &NodeDraft,
) -> Result<(), IronicError> {
    let is_set =
        |before: &Option<String>, after: &Option<String>| before.is_none() && after.is_some();
    let content = &draft.content;
    let is_protectable = PROTECTED_STATES.contains(&state.state);
    if is_set(&before.protected, &content.protected) && !is_protectable {
        return Err(wrong_state(state, "'protected' set"));
    }
    // A node on offer may be taken at any moment.
    let is_offered = state.state == ProvisionState::Available;
    if is_set(&before.retired, &content.retired) && is_offered {
        return Err(wrong_state(state, "'retired' set"));
    }
    Ok(())
}

/// Refuses the deletion of a node that something depends on.
///
/// # Errors
/// 403 for a protected node, as in Ironic, and 409.
pub(super) fn check_is_deletable(node: &SeenNode, state: &NodeState) -> Result<(), IronicError> {
    let id = node.id();
    if let Some(instance) = instance_uuid(node) {
        let text = format!("Node {id} is associated with instance {instance}.");
        return Err(IronicError::conflict(text));
    }
    if stored(node).protected.is_some() {
        let text = format!("Node {id} is protected and cannot be undeployed, rebuilt or deleted.");
        return Err(IronicError::new(http::StatusCode::FORBIDDEN, text));
    }
    let is_maintained = maintenance_reason(node).is_some();
    if DELETABLE_STATES.contains(&state.state) || is_maintained {
        return Ok(());
    }
    let allowed: Vec<&str> = DELETABLE_STATES
        .iter()
        .map(|state| state.as_str())
        .collect();
    let (state, allowed) = (state.state.as_str(), allowed.join(", "));
    Err(IronicError::conflict(format!(
        "Can not delete node \"{id}\" while it is in provision state \"{state}\". Valid provision \
         states to perform deletion are: \"{allowed}\""
    )))
}

/// Refuses begin and end of a maintenance to a project that only uses a machine of the site. The machine
/// would stay withheld from all others when the project gives it back.
///
/// # Errors
/// 409.
pub(super) fn check_may_withhold(
    node: &SeenNode,
    caller: Option<ProjectId>,
) -> Result<(), IronicError> {
    let is_related = |project| node.machine.tenure.relation(project).is_some();
    if caller.is_none_or(is_related) {
        return Ok(());
    }
    let id = node.id();
    let text = format!("maintenance: node {id} is the site's: its administrators decide about it");
    Err(IronicError::conflict(text))
}

/// The refusal to end an operator's lock.
pub(super) fn locked(node: &SeenNode) -> IronicError {
    let (id, reason) = (node.id(), &node.machine.condition.description);
    IronicError::conflict(format!(
        "Node {id} was locked by an operator: {reason}. An operator ends it: metalmesh machine \
         set-state {id} available"
    ))
}

fn wrong_state(state: &NodeState, what: &str) -> IronicError {
    let state = state.state.as_str();
    IronicError::conflict(format!(
        "Node can not have {what} in provision state \"{state}\""
    ))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use proto_types::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::nodes::node_draft::DraftBase;
    use crate::nodes::node_object::node_object;

    const ID: &str = "0e21d58f-5de2-4956-85ff-33935ea1ca01";

    fn in_state(state: ProvisionState) -> NodeState {
        NodeState {
            state,
            target: state.target(),
            since: Timestamp::ZERO,
            error: String::new(),
        }
    }

    fn node(machine: Value) -> SeenNode {
        SeenNode::of_json(machine, Some(NodeContent::default()))
    }

    #[test]
    fn nodes_on_their_way_are_not_changed() {
        let change = json!([{"op": "add", "path": "/name", "value": "n"}]);
        let removal = json!([{"op": "remove", "path": "/instance_uuid"}]);
        let locked = json!({"condition": {"state": "locked"}});
        for (machine, state, patch, is_accepted) in [
            (json!({}), ProvisionState::Available, &change, true),
            (json!({}), ProvisionState::Active, &change, true),
            (json!({}), ProvisionState::Cleaning, &change, false),
            (json!({}), ProvisionState::Deploying, &change, false),
            (json!({}), ProvisionState::Deploying, &removal, false),
            (locked.clone(), ProvisionState::Deploying, &removal, true),
            (locked, ProvisionState::Deploying, &change, false),
            (json!({}), ProvisionState::DeployFailed, &change, true),
            (json!({}), ProvisionState::InspectWait, &change, true),
            (json!({}), ProvisionState::Inspecting, &change, false),
        ] {
            let patch = JsonPatch::parse(patch).unwrap();
            let checked = check_is_changeable(&node(machine), &in_state(state), &patch);
            assert_eq!(checked.is_ok(), is_accepted, "{state:?} {patch:?}");
        }
    }

    fn checked(machine: Value, state: ProvisionState, field: &str, value: Value) -> Option<String> {
        let node = node(machine);
        let mut object = node_object(&node, true);
        object[field] = value;
        let draft = NodeDraft::parse(&object, &DraftBase::of(&node), Timestamp::ZERO).unwrap();
        let checked = check_draft(&node, &in_state(state), &draft, None);
        checked.err().map(|error| error.text)
    }

    #[test]
    fn fields_depend_on_the_state() {
        let classed = json!({"capability": {"resource_class": "rc1"}});
        let held = json!({"tenure": {"reserved_by": ID}});
        let locked = json!({"condition": {"state": "locked", "description": "fan"}});
        let other = json!("1ab63b9e-66d7-4cd7-8618-dddd0f9f7881");
        use ProvisionState::{Active, Available, Manageable};
        for (machine, state, field, value, part) in [
            (json!({}), Active, "protected", json!(true), None),
            (
                json!({}),
                Available,
                "protected",
                json!(true),
                Some("'protected' set"),
            ),
            (json!({}), Manageable, "retired", json!(true), None),
            (
                json!({}),
                Available,
                "retired",
                json!(true),
                Some("'retired' set"),
            ),
            (json!({}), Active, "resource_class", json!("rc2"), None),
            (
                classed.clone(),
                Manageable,
                "resource_class",
                json!("rc2"),
                None,
            ),
            (classed.clone(), Active, "extra", json!({"a": 1}), None),
            (
                classed,
                Active,
                "resource_class",
                json!("rc2"),
                Some("resource_class"),
            ),
            (
                locked.clone(),
                Active,
                "maintenance",
                json!(false),
                Some("by an operator: fan"),
            ),
            (locked, Active, "name", json!("n"), None),
            (held.clone(), Available, "name", json!("n"), None),
            (
                held.clone(),
                Available,
                "instance_uuid",
                Value::Null,
                Some("held by an allocation"),
            ),
            (
                held,
                Available,
                "instance_uuid",
                other.clone(),
                Some("held by an allocation"),
            ),
            (json!({}), Available, "instance_uuid", other, None),
        ] {
            let refused = checked(machine, state, field, value.clone());
            let is_as_expected = match (&refused, part) {
                (None, None) => true,
                (Some(text), Some(part)) => text.contains(part),
                _ => false,
            };
            assert!(is_as_expected, "{field} {value} in {state:?}: {refused:?}");
        }
    }

    #[test]
    fn a_user_does_not_withhold_machines_of_the_site() {
        let one: ProjectId = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205".parse().unwrap();
        for (tenure, caller, is_accepted) in [
            (json!({}), None, true),
            (json!({}), Some(one), false),
            (json!({ "owner": one }), Some(one), true),
            (json!({ "owner": ID, "lessee": one }), Some(one), true),
            (json!({ "owner": ID }), Some(one), false),
        ] {
            let checked = check_may_withhold(&node(json!({ "tenure": tenure })), caller);
            assert_eq!(checked.is_ok(), is_accepted, "{tenure} {caller:?}");
        }
    }

    #[test]
    fn nodes_in_use_are_not_deleted() {
        let locked = json!({"condition": {"state": "locked"}});
        for (machine, state, refused) in [
            (json!({}), ProvisionState::Enroll, None),
            (json!({}), ProvisionState::Available, None),
            (
                json!({}),
                ProvisionState::Active,
                Some(StatusCode::CONFLICT),
            ),
            (locked, ProvisionState::CleanFailed, None),
            (
                json!({"tenure": {"reserved_by": ID}}),
                ProvisionState::Available,
                Some(StatusCode::CONFLICT),
            ),
        ] {
            let checked = check_is_deletable(&node(machine), &in_state(state));
            assert_eq!(
                checked.err().map(|error| error.status),
                refused,
                "{state:?}"
            );
        }
        let content = NodeContent {
            protected: Some(String::new()),
            ..NodeContent::default()
        };
        let protected = SeenNode::of_json(json!({}), Some(content));
        let refused = check_is_deletable(&protected, &in_state(ProvisionState::Enroll));
        assert_eq!(refused.unwrap_err().status, StatusCode::FORBIDDEN);
    }
}
