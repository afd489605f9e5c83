//! The conditions of a node under which a verb counts.

use control_state::ProvisionState;
use control_state::query::ProvisionEvent;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::life::refusals::{
    in_maintenance, invalid_state, locked, protected, retired, unsupported_but,
};
use crate::view::{maintenance_reason, stored};

/// Refuses a verb that does not count in the state of the node, or that its maintenance, retirement or
/// protection forbids. `target` is the verb as the client wrote it.
///
/// # Errors
/// 400 in Ironic's words; 409 while a step is in progress, after which the verb may count; 403 for a
/// protected node.
pub(super) fn check_verb(
    node: &SeenNode,
    state: ProvisionState,
    verb: ProvisionEvent,
    target: &str,
) -> Result<(), IronicError> {
    let id = node.id();
    let maintained = maintenance_reason(node).and_then(|_| operation(verb));
    let is_deployment = matches!(verb, ProvisionEvent::Deploy | ProvisionEvent::Rebuild);
    // As in Ironic, the maintenance refuses a deployment before the state does.
    if let Some(operation) = maintained.filter(|_| is_deployment) {
        return Err(in_maintenance(operation, id));
    }
    if state.next(verb).is_none() {
        return Err(match state.is_working() {
            true => locked(id),
            false => invalid_state(target, id, state.as_str()),
        });
    }
    if let Some(operation) = maintained {
        return Err(in_maintenance(operation, id));
    }
    let content = stored(node);
    if verb == ProvisionEvent::Provide && content.retired.is_some() {
        return Err(retired("providing", id));
    }
    let is_end = matches!(verb, ProvisionEvent::Delete | ProvisionEvent::Rebuild);
    if is_end && content.protected.is_some() {
        return Err(protected(id));
    }
    Ok(())
}

/// Refuses verbs that metalmesh does for no node.
///
/// # Errors
/// 400 as Ironic says it of an interface that the driver does not have.
pub(super) fn check_supported(
    node: &SeenNode,
    state: ProvisionState,
    verb: ProvisionEvent,
) -> Result<(), IronicError> {
    let (extension, remedy) = match verb {
        ProvisionEvent::Rebuild => (
            "rebuild",
            "Undeploy the node, which wipes it, and deploy it again: metalmesh installs on clean disks \
             alone.",
        ),
        ProvisionEvent::Deploy if state == ProvisionState::DeployFailed => (
            "a deployment over one that failed",
            "Undeploy the node, which wipes it, and deploy it again.",
        ),
        ProvisionEvent::Rescue | ProvisionEvent::Unrescue => {
            ("rescue", "Boot a rescue system as an image of its own.")
        }
        _ => return Ok(()),
    };
    Err(unsupported_but(node, extension, remedy))
}

/// The verb as a participle, if maintenance forbids it.
const fn operation(verb: ProvisionEvent) -> Option<&'static str> {
    match verb {
        ProvisionEvent::Deploy | ProvisionEvent::Rebuild => Some("provisioning"),
        ProvisionEvent::Provide => Some("providing"),
        ProvisionEvent::Clean => Some("cleaning"),
        ProvisionEvent::Rescue => Some("rescuing"),
        ProvisionEvent::Unrescue => Some("unrescuing"),
        ProvisionEvent::Service => Some("service"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use control_state::{NodeContent, NodeMaintenance};
    use http::StatusCode;
    use proto_types::Timestamp;
    use serde_json::json;

    use super::*;

    fn maintained() -> NodeContent {
        NodeContent {
            maintenance: Some(NodeMaintenance {
                reason: String::new(),
                since: Timestamp::ZERO,
            }),
            ..NodeContent::default()
        }
    }

    #[test]
    fn conditions_of_a_node_refuse_verbs() {
        use ProvisionEvent as E;
        use ProvisionState as S;
        let plain = NodeContent::default();
        let retired = NodeContent {
            retired: Some("old".to_owned()),
            ..NodeContent::default()
        };
        let protected = NodeContent {
            protected: Some("mine".to_owned()),
            ..NodeContent::default()
        };
        for (content, state, verb, expected) in [
            (&plain, S::Available, E::Deploy, Ok(())),
            (
                &plain,
                S::Active,
                E::Deploy,
                Err((400, "in state \"active\"")),
            ),
            (&plain, S::Deploying, E::Delete, Err((409, "is locked"))),
            (&plain, S::DeployWait, E::Delete, Ok(())),
            (
                &plain,
                S::DeployWait,
                E::Provide,
                Err((400, "\"wait call-back\"")),
            ),
            (&plain, S::Cleaning, E::Provide, Err((409, "is locked"))),
            (
                &maintained(),
                S::Available,
                E::Deploy,
                Err((400, "The provisioning operation")),
            ),
            (
                &maintained(),
                S::Active,
                E::Deploy,
                Err((400, "The provisioning operation")),
            ),
            (
                &maintained(),
                S::Manageable,
                E::Provide,
                Err((400, "The providing operation")),
            ),
            (
                &maintained(),
                S::Available,
                E::Provide,
                Err((400, "in state \"available\"")),
            ),
            (&maintained(), S::Available, E::Manage, Ok(())),
            (&maintained(), S::Active, E::Delete, Ok(())),
            (
                &retired,
                S::Manageable,
                E::Provide,
                Err((400, "because it is retired")),
            ),
            (&retired, S::Manageable, E::Clean, Ok(())),
            (&protected, S::Active, E::Delete, Err((403, "is protected"))),
            (
                &protected,
                S::Active,
                E::Rebuild,
                Err((403, "is protected")),
            ),
            (&protected, S::Active, E::Service, Ok(())),
        ] {
            let node = SeenNode::of_json(json!({}), Some(content.clone()));
            let found = check_verb(&node, state, verb, "target");
            match (found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(refused), Err((status, part))) => {
                    assert_eq!(refused.status.as_u16(), status, "{verb:?} {state:?}");
                    assert!(refused.text.contains(part), "{}", refused.text);
                }
                (found, _) => panic!("{verb:?} {state:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_lock_of_an_operator_counts_as_maintenance() {
        let condition = json!({"state": "locked", "description": "fan"});
        let node = SeenNode::of_json(json!({ "condition": condition }), None);
        let (state, verb) = (ProvisionState::Manageable, ProvisionEvent::Provide);
        let refused = check_verb(&node, state, verb, "provide").unwrap_err();
        assert!(
            refused.text.contains("maintenance mode"),
            "{}",
            refused.text
        );
    }

    #[test]
    fn verbs_that_metalmesh_does_for_no_node() {
        use ProvisionEvent as E;
        use ProvisionState as S;
        let node = SeenNode::of_json(json!({}), None);
        for (state, verb, expected) in [
            (S::Active, E::Rebuild, false),
            (S::Error, E::Rebuild, false),
            (S::DeployFailed, E::Deploy, false),
            (S::Available, E::Deploy, true),
            (S::Active, E::Rescue, false),
            (S::Active, E::Service, true),
            (S::Active, E::Delete, true),
        ] {
            let found = check_supported(&node, state, verb);
            assert_eq!(found.is_ok(), expected, "{verb:?} {state:?}");
            if let Err(refused) = found {
                assert_eq!(refused.status, StatusCode::BAD_REQUEST);
                assert!(
                    refused
                        .text
                        .starts_with("Driver metalmesh does not support")
                );
            }
        }
    }
}
