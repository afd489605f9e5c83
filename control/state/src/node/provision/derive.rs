//! The provision state of a node, from its machine and its record.

use proto_types::Timestamp;

use super::NodeState;
use super::overlay::staged;
use crate::machine::entity::{HoldCause, Machine, Phase};
use crate::node::entity::{NodeRecord, ProvisionState};

/// The provision state of a node. `record` is `None` for a machine that no client changed yet.
pub fn node_state(machine: &Machine, record: Option<&NodeRecord>, now: Timestamp) -> NodeState {
    let content = record.map(|record| &record.content);
    let stage = content.and_then(|content| content.stage.as_ref());
    if let Some(state) = stage.and_then(|stage| staged(machine, stage, now)) {
        return state;
    }
    let is_retired = content.is_some_and(|content| content.retired.is_some());
    of_phase(machine, is_retired)
}

/// The state that the machine's phase says.
fn of_phase(machine: &Machine, is_retired: bool) -> NodeState {
    let state = match machine.phase {
        Phase::New => ProvisionState::Enroll,
        Phase::Wiping => ProvisionState::Cleaning,
        // As in Ironic: a retired node is not available after its cleaning.
        Phase::Waiting if is_retired => ProvisionState::Manageable,
        Phase::Waiting => ProvisionState::Available,
        // Until hammer takes the order, the deployment waits for its call.
        Phase::Installing if !has_begun(machine) => ProvisionState::DeployWait,
        Phase::Installing | Phase::BootOrder | Phase::Rebooting | Phase::TenantPorts => {
            ProvisionState::Deploying
        }
        Phase::Running => ProvisionState::Active,
        Phase::ReclaimPowerOff | Phase::ReclaimPorts => ProvisionState::Deleting,
        Phase::ReclaimBoot | Phase::ReclaimRegister => ProvisionState::CleanWait,
        Phase::Held(HoldCause::Install) => ProvisionState::DeployFailed,
        Phase::Held(HoldCause::Wipe) => ProvisionState::CleanFailed,
        Phase::Held(HoldCause::Bmc | HoldCause::Ports) => ProvisionState::Error,
    };
    let found = NodeState::new(state, machine.since);
    match machine.phase {
        Phase::Held(_) => found.failed(machine.reason.as_str()),
        // In other phases the reason tells of retries and waits, which are no failure yet.
        _ => found,
    }
}

/// `true` if hammer began the current attempt of the installation.
fn has_begun(machine: &Machine) -> bool {
    let allocation = machine.allocation.as_ref();
    allocation.is_some_and(|allocation| allocation.install.begun)
}
