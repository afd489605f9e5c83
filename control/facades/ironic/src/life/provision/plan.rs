//! The effect of a verb on a node that stays as it is allocated: all verbs but those that install or
//! free it.

use control_state::query::ProvisionEvent;
use control_state::{BmcAction, HoldCause, Machine, Phase, ProvisionState};

use super::steps::StepPlan;
use super::verb_plan::VerbPlan;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::life::refusals::{invalid_state, unsupported, unsupported_but};
use crate::view::stored;

/// Reason of the state after an adoption.
const NOT_ADOPTED: &str = "metalmesh adopts no running system: it knows neither its image nor its \
                           addresses, and no identity. Provide the node, which wipes it, and deploy it";
/// Reason of the state after steps of cleaning were ended.
const CLEAN_ABORTED: &str = "Clean operation aborted by request";
/// Reason of the state after an inspection was ended.
const INSPECTION_ABORTED: &str = "Inspection was aborted by request.";
/// Reason of the state after a hold of service was ended.
const SERVICE_ABORTED: &str = "Service operation aborted by request";
/// The interface of a node whose hardware is not to be read.
const NO_INSPECT: &str = "no-inspect";

/// The plan for a verb that counts in the state of the node. `steps` are those of the request; they are
/// empty for verbs that have none.
///
/// # Errors
/// 400 for what metalmesh does not do, 409 for a machine that an operator has to look at first.
pub(super) fn plan(
    verb: ProvisionEvent,
    node: &SeenNode,
    state: ProvisionState,
    steps: StepPlan,
) -> Result<VerbPlan, IronicError> {
    let machine = &node.machine;
    match verb {
        ProvisionEvent::Manage => Ok(VerbPlan::stays(match state {
            // The BMC has to be read first.
            ProvisionState::Enroll => ProvisionState::Verifying,
            _ => ProvisionState::Manageable,
        })),
        ProvisionEvent::Provide => provide(machine),
        ProvisionEvent::Inspect => inspect(node),
        ProvisionEvent::Adopt => {
            let failed = ProvisionState::AdoptFailed;
            Ok(VerbPlan::failed(failed, NOT_ADOPTED))
        }
        // In Ironic a node is cleaned on its way from a tenant by the same event.
        ProvisionEvent::Clean if state == ProvisionState::Manageable => clean(machine, steps),
        ProvisionEvent::Service => Ok(VerbPlan {
            orders: steps.orders,
            stage: steps.holds.then_some(ProvisionState::ServiceHold),
            ..VerbPlan::default()
        }),
        ProvisionEvent::Abort => abort(node, state),
        ProvisionEvent::Unhold if state == ProvisionState::CleanHold => {
            Ok(VerbPlan::stays(ProvisionState::Manageable))
        }
        ProvisionEvent::Unhold => Ok(VerbPlan::default()),
        _ => Err(invalid_state(verb.as_str(), node.id(), state.as_str())),
    }
}

/// Puts a node on offer. A machine that never registered is booted for it.
fn provide(machine: &Machine) -> Result<VerbPlan, IronicError> {
    check_wipe(machine)?;
    if machine.phase == Phase::New {
        return Ok(VerbPlan {
            orders: boot_orders(),
            ..VerbPlan::stays(ProvisionState::CleanWait)
        });
    }
    Ok(VerbPlan::default())
}

/// Has hammer boot and report the hardware.
fn inspect(node: &SeenNode) -> Result<VerbPlan, IronicError> {
    let interface = stored(node).interfaces.get("inspect_interface");
    if interface.is_some_and(|interface| interface == NO_INSPECT) {
        return Err(unsupported(node, "inspect"));
    }
    Ok(VerbPlan {
        orders: boot_orders(),
        ..VerbPlan::stays(ProvisionState::InspectWait)
    })
}

/// Does the steps of a manual clean.
fn clean(machine: &Machine, steps: StepPlan) -> Result<VerbPlan, IronicError> {
    if !steps.wipes {
        let held = steps.holds.then_some(ProvisionState::CleanHold);
        return Ok(VerbPlan {
            orders: steps.orders,
            ..VerbPlan::stays(held.unwrap_or(ProvisionState::Manageable))
        });
    }
    check_wipe(machine)?;
    Ok(VerbPlan {
        wipes: true,
        ..VerbPlan::stays(ProvisionState::Cleaning)
    })
}

/// Ends a wait or a hold.
fn abort(node: &SeenNode, state: ProvisionState) -> Result<VerbPlan, IronicError> {
    let is_new = node.machine.phase == Phase::New;
    match state {
        // On its way from a tenant the machine is wiped in any case: no client may stop that.
        ProvisionState::CleanWait if is_new => {
            Ok(VerbPlan::failed(ProvisionState::CleanFailed, CLEAN_ABORTED))
        }
        ProvisionState::CleanHold => {
            Ok(VerbPlan::failed(ProvisionState::CleanFailed, CLEAN_ABORTED))
        }
        ProvisionState::InspectWait => {
            let failed = ProvisionState::InspectFailed;
            Ok(VerbPlan::failed(failed, INSPECTION_ABORTED))
        }
        ProvisionState::ServiceHold => {
            let failed = ProvisionState::ServiceFailed;
            Ok(VerbPlan::failed(failed, SERVICE_ABORTED))
        }
        ProvisionState::ServiceFailed => Ok(VerbPlan::default()),
        ProvisionState::DeployWait => {
            let remedy = "Undeploy the node, which ends the deployment.";
            Err(unsupported_but(node, "abort of a deployment", remedy))
        }
        _ => {
            let remedy = "The wipe of its disks is not ended before its end.";
            Err(unsupported_but(node, "abort of automated cleaning", remedy))
        }
    }
}

/// Refuses a machine whose disks could not be wiped: another attempt is an operator's decision.
fn check_wipe(machine: &Machine) -> Result<(), IronicError> {
    if machine.phase != Phase::Held(HoldCause::Wipe) {
        return Ok(());
    }
    let (id, reason) = (machine.id, &machine.reason);
    Err(IronicError::conflict(format!(
        "Node {id} could not be wiped ({reason}): an administrator looks at it, and then lets it be \
         wiped again with metalmesh machine set-state {id} available"
    )))
}

/// The orders for a boot into hammer. The cycle powers on a machine that is off.
fn boot_orders() -> Vec<BmcAction> {
    vec![BmcAction::BootPxe, BmcAction::PowerCycle]
}

#[cfg(test)]
mod tests {
    use control_state::NodeContent;
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    const WAITING: &str = "\"waiting\"";
    const NEW: &str = "\"new\"";
    const HELD: &str = "{\"held\": \"wipe\"}";

    fn node(phase: &str) -> SeenNode {
        let phase: Value = serde_json::from_str(phase).unwrap();
        SeenNode::of_json(
            json!({ "phase": phase, "reason": "disk sda", "boot_id": "b1" }),
            None,
        )
    }

    fn planned(
        verb: ProvisionEvent,
        phase: &str,
        state: ProvisionState,
        steps: StepPlan,
    ) -> Result<VerbPlan, StatusCode> {
        plan(verb, &node(phase), state, steps).map_err(|error| error.status)
    }

    fn booted(stage: ProvisionState) -> VerbPlan {
        VerbPlan {
            orders: vec![BmcAction::BootPxe, BmcAction::PowerCycle],
            ..VerbPlan::stays(stage)
        }
    }

    #[test]
    fn verbs_without_steps() {
        use ProvisionEvent as E;
        use ProvisionState as S;
        let refused = Err(StatusCode::BAD_REQUEST);
        for (verb, phase, state, expected) in [
            (E::Manage, NEW, S::Enroll, Ok(VerbPlan::stays(S::Verifying))),
            (
                E::Manage,
                WAITING,
                S::Available,
                Ok(VerbPlan::stays(S::Manageable)),
            ),
            (
                E::Manage,
                HELD,
                S::CleanFailed,
                Ok(VerbPlan::stays(S::Manageable)),
            ),
            (
                E::Manage,
                WAITING,
                S::InspectFailed,
                Ok(VerbPlan::stays(S::Manageable)),
            ),
            (E::Provide, WAITING, S::Manageable, Ok(VerbPlan::default())),
            (E::Provide, NEW, S::Manageable, Ok(booted(S::CleanWait))),
            (E::Provide, HELD, S::Manageable, Err(StatusCode::CONFLICT)),
            (
                E::Inspect,
                WAITING,
                S::Manageable,
                Ok(booted(S::InspectWait)),
            ),
            (
                E::Inspect,
                NEW,
                S::InspectFailed,
                Ok(booted(S::InspectWait)),
            ),
            (
                E::Adopt,
                WAITING,
                S::Manageable,
                Ok(VerbPlan::failed(S::AdoptFailed, NOT_ADOPTED)),
            ),
            (
                E::Abort,
                NEW,
                S::CleanWait,
                Ok(VerbPlan::failed(S::CleanFailed, CLEAN_ABORTED)),
            ),
            (
                E::Abort,
                WAITING,
                S::CleanHold,
                Ok(VerbPlan::failed(S::CleanFailed, CLEAN_ABORTED)),
            ),
            (
                E::Abort,
                WAITING,
                S::InspectWait,
                Ok(VerbPlan::failed(S::InspectFailed, INSPECTION_ABORTED)),
            ),
            (
                E::Abort,
                "\"running\"",
                S::ServiceHold,
                Ok(VerbPlan::failed(S::ServiceFailed, SERVICE_ABORTED)),
            ),
            (
                E::Abort,
                "\"running\"",
                S::ServiceFailed,
                Ok(VerbPlan::default()),
            ),
            (E::Abort, "\"reclaim_boot\"", S::CleanWait, refused.clone()),
            (E::Abort, "\"installing\"", S::DeployWait, refused.clone()),
            (
                E::Unhold,
                WAITING,
                S::CleanHold,
                Ok(VerbPlan::stays(S::Manageable)),
            ),
            (
                E::Unhold,
                "\"running\"",
                S::ServiceHold,
                Ok(VerbPlan::default()),
            ),
            // The event of Ironic's own machine, which is no verb there.
            (E::Clean, "\"reclaim_ports\"", S::Deleting, refused),
        ] {
            let found = planned(verb, phase, state, StepPlan::default());
            assert_eq!(found, expected, "{verb:?} {phase} {state:?}");
        }
    }

    #[test]
    fn steps_of_cleaning_and_service() {
        use ProvisionState as S;
        let wipe = StepPlan {
            wipes: true,
            ..StepPlan::default()
        };
        let hold = StepPlan {
            orders: vec![BmcAction::PowerOff],
            holds: true,
            ..StepPlan::default()
        };
        let off = StepPlan {
            holds: false,
            ..hold.clone()
        };
        let ordered = |stage| VerbPlan {
            orders: vec![BmcAction::PowerOff],
            stage,
            ..VerbPlan::default()
        };
        let wiped = VerbPlan {
            wipes: true,
            ..VerbPlan::stays(S::Cleaning)
        };
        let (clean, service) = (ProvisionEvent::Clean, ProvisionEvent::Service);
        for (verb, phase, state, steps, expected) in [
            (
                clean,
                WAITING,
                S::Manageable,
                wipe.clone(),
                Ok(wiped.clone()),
            ),
            (clean, NEW, S::Manageable, wipe.clone(), Ok(wiped)),
            (clean, HELD, S::Manageable, wipe, Err(StatusCode::CONFLICT)),
            (
                clean,
                WAITING,
                S::Manageable,
                hold.clone(),
                Ok(ordered(Some(S::CleanHold))),
            ),
            (
                clean,
                WAITING,
                S::Manageable,
                off.clone(),
                Ok(ordered(Some(S::Manageable))),
            ),
            (
                service,
                "\"running\"",
                S::Active,
                hold,
                Ok(ordered(Some(S::ServiceHold))),
            ),
            (
                service,
                "\"running\"",
                S::ServiceFailed,
                off,
                Ok(ordered(None)),
            ),
        ] {
            let found = planned(verb, phase, state, steps.clone());
            assert_eq!(found, expected, "{verb:?} {phase} {steps:?}");
        }
    }

    #[test]
    fn hardware_of_a_node_that_is_not_to_be_read() {
        let mut content = NodeContent::default();
        let interface = ("inspect_interface".to_owned(), "no-inspect".to_owned());
        content.interfaces.extend([interface]);
        let node = SeenNode::of_json(json!({}), Some(content));
        let refused = inspect(&node).unwrap_err();
        let text = "Driver metalmesh does not support inspect (disabled or not implemented).";
        assert_eq!(refused.text, text);
    }
}
