//! The stage of a record over the phase of its machine.

use proto_types::Timestamp;

use super::NodeState;
use crate::machine::entity::{Bmc, HoldCause, Machine, Phase};
use crate::node::entity::{NodeStage, ProvisionState};

/// Longest wait for a BMC agent to read the BMC of a node that is verified, milliseconds. Beyond it the
/// node is back in `enroll`. Agents read their BMCs every few seconds.
const VERIFY_MS: u64 = 60_000;
/// Longest wait for hammer on a machine that a verb booted, milliseconds. Beyond it the verb has failed.
/// As Ironic's own timeout of cleaning and inspection.
const BOOT_MS: u64 = 30 * 60_000;

/// The state that a stage says. `None` means that the stage is over: the machine has moved on, and its
/// phase says the state.
pub(super) fn staged(machine: &Machine, stage: &NodeStage, now: Timestamp) -> Option<NodeState> {
    let is_used = machine.allocation.is_some();
    match stage.state {
        ProvisionState::ServiceHold | ProvisionState::ServiceFailed => serviced(machine, stage),
        // The machine was put on offer meanwhile, and somebody has it.
        _ if is_used => None,
        ProvisionState::Verifying => Some(verified(machine, stage, now)),
        ProvisionState::Cleaning => Some(cleaned(machine, stage, now)),
        ProvisionState::CleanWait => provided(machine, stage, now),
        ProvisionState::InspectWait => Some(inspected(machine, stage, now)),
        ProvisionState::Manageable
        | ProvisionState::CleanFailed
        | ProvisionState::CleanHold
        | ProvisionState::InspectFailed
        | ProvisionState::AdoptFailed => Some(resting(stage)),
        // No verb leaves a node in another state.
        _ => None,
    }
}

/// A state in which the node stays until the next verb.
fn resting(stage: &NodeStage) -> NodeState {
    let state = NodeState::new(stage.state, stage.since).failed(stage.error.as_str());
    match stage.state {
        // The steps were those of a verb, after which the node is manageable again.
        ProvisionState::CleanHold | ProvisionState::CleanFailed => state.then_manageable(),
        _ => state,
    }
}

/// A hold or a failure of service, as long as the same system runs.
fn serviced(machine: &Machine, stage: &NodeStage) -> Option<NodeState> {
    let is_same = machine.phase == Phase::Running && !has_moved_on(machine, stage);
    is_same.then(|| resting(stage))
}

/// A node under management: its BMC has to be read once. A machine that registered is known without.
fn verified(machine: &Machine, stage: &NodeStage, now: Timestamp) -> NodeState {
    let is_read = machine.bmc.as_ref().is_some_and(Bmc::was_read);
    if is_read || machine.phase != Phase::New {
        return NodeState::new(ProvisionState::Manageable, stage.since);
    }
    if now.since_ms(stage.since) < VERIFY_MS {
        return NodeState::new(ProvisionState::Verifying, stage.since);
    }
    let error = "no BMC agent has read the BMC of the machine: check that an agent of its partition \
                 finds it, and manage the node again";
    NodeState::new(ProvisionState::Enroll, stage.since.plus_ms(VERIFY_MS)).failed(error)
}

/// A wipe that a client asked for, after which the node is manageable again.
fn cleaned(machine: &Machine, stage: &NodeStage, now: Timestamp) -> NodeState {
    let cleaning = |since| NodeState::new(ProvisionState::Cleaning, since).then_manageable();
    match machine.phase {
        Phase::Waiting if has_moved_on(machine, stage) && !machine.dirty => {
            NodeState::new(ProvisionState::Manageable, machine.since)
        }
        Phase::Held(HoldCause::Wipe) => {
            let failed = NodeState::new(ProvisionState::CleanFailed, machine.since);
            failed.failed(machine.reason.as_str()).then_manageable()
        }
        Phase::Wiping => cleaning(machine.since),
        _ if is_late(machine, stage, now) => {
            not_booted(ProvisionState::CleanFailed, stage).then_manageable()
        }
        _ => cleaning(stage.since),
    }
}

/// A node that was put on offer before its machine ever registered: it is booted and wiped first.
fn provided(machine: &Machine, stage: &NodeStage, now: Timestamp) -> Option<NodeState> {
    if has_moved_on(machine, stage) {
        return None;
    }
    if is_late(machine, stage, now) {
        return Some(not_booted(ProvisionState::CleanFailed, stage));
    }
    Some(NodeState::new(ProvisionState::CleanWait, stage.since))
}

/// A node whose hardware is read: hammer boots and registers it.
fn inspected(machine: &Machine, stage: &NodeStage, now: Timestamp) -> NodeState {
    let is_registered = !machine.boot_id.is_empty() && machine.boot_id != stage.boot_id;
    if is_registered {
        return NodeState::new(ProvisionState::Manageable, stage.since);
    }
    if now.since_ms(stage.since) >= BOOT_MS {
        return not_booted(ProvisionState::InspectFailed, stage);
    }
    NodeState::new(ProvisionState::InspectWait, stage.since)
}

/// The failure of a verb whose boot never came to hammer.
fn not_booted(state: ProvisionState, stage: &NodeStage) -> NodeState {
    let error = "the machine did not boot the installer within 30 minutes: see its events, and the \
                 orders of its BMC";
    NodeState::new(state, stage.since.plus_ms(BOOT_MS)).failed(error)
}

/// `true` if the machine has left the phase in which it was at the time of the verb.
fn has_moved_on(machine: &Machine, stage: &NodeStage) -> bool {
    machine.since != stage.phase_since
}

/// `true` if the machine is where it was at the time of the verb, for too long.
fn is_late(machine: &Machine, stage: &NodeStage, now: Timestamp) -> bool {
    !has_moved_on(machine, stage) && now.since_ms(stage.since) >= BOOT_MS
}
