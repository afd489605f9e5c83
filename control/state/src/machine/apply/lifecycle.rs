//! Helpers of the steps from the first registration to the running system.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, Timestamp};

use crate::machine::entity::{EventLog, Liveliness, Machine, Phase, Segment};
use crate::machine::phase::{PhaseEvent, enter};
use crate::tables::Tx;

/// Who taints machines that cannot be wiped.
pub(crate) const ISSUER: &str = "metalmesh";

/// Anything heard from a machine that is not an event.
pub(crate) fn sign_of_life(tx: &mut Tx<'_>, machine: MachineId) {
    let log = tx.get::<EventLog>(&machine).map(|log| EventLog::clone(log));
    let mut log = log.unwrap_or_else(|| EventLog::new(machine));
    log.last_event_time = tx.now;
    log.liveliness = Liveliness::Alive;
    tx.save(log);
}

/// A machine that nobody has is heard again: its revivals count anew, and what was said of its silence
/// is over.
pub(crate) fn came_back(machine: &mut Machine) {
    if machine.step_attempts == 0 {
        return;
    }
    match machine.phase {
        Phase::Wiping | Phase::Waiting => {
            machine.step_attempts = 0;
            machine.reason = resting_reason(machine).to_owned();
        }
        // A tenant waits for it: one that comes up again and again is held in the end.
        Phase::Installing => machine.reason.clear(),
        _ => {}
    }
}

/// Another size matches a machine that nobody has: a reason that told of the last one is over.
pub(crate) fn size_changed(machine: &mut Machine) {
    if machine.phase == Phase::Waiting && machine.step_attempts == 0 {
        machine.reason = resting_reason(machine).to_owned();
    }
}

/// The reason of a machine that waits although it is healthy; empty when it is on offer.
pub(crate) fn resting_reason(machine: &Machine) -> &'static str {
    match (machine.phase, &machine.size) {
        (Phase::Waiting, None) => "no size matches the hardware, or more than one does",
        _ => "",
    }
}

/// Hammer says goodbye: from now on the port is the tenant's.
pub(crate) fn leaves_hammer(machine: &mut Machine, now: Timestamp) {
    let installed = machine
        .allocation
        .as_ref()
        .is_some_and(|a| a.install.installed_at.is_some());
    if installed && matches!(machine.phase, Phase::BootOrder | Phase::Rebooting) {
        if machine.phase == Phase::BootOrder {
            enter(machine, PhaseEvent::HammerLeft, now, "");
        }
        machine.segment = Segment::Tenant;
    }
}

pub(crate) fn wrong_phase(machine: &Machine, verb: &str) -> Error {
    Error::new(
        ErrorCode::WrongPhase,
        format!(
            "machine \"{}\" is {}: it cannot be {verb} now",
            machine.id, machine.phase
        ),
    )
    .object("machine", machine.id)
}
