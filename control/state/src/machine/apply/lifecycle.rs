//! Shared steps between the first registration and the running system.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, Timestamp};

use crate::machine::entity::{EventLog, Liveliness, Machine, Phase, Segment};
use crate::machine::phase::{PhaseEvent, enter};
use crate::tables::Tx;

/// Issuer of the taint of a machine that cannot be wiped.
pub(crate) const ISSUER: &str = "metalmesh";

/// Records a sign of life that is not an event.
pub(crate) fn sign_of_life(tx: &mut Tx<'_>, machine: MachineId) {
    let log = tx.get::<EventLog>(&machine).map(|log| EventLog::clone(log));
    let mut log = log.unwrap_or_else(|| EventLog::new(machine));
    log.last_event_time = tx.now;
    log.liveliness = Liveliness::Alive;
    tx.save(log);
}

/// Ends the revival of a machine that is heard again: the reason tells of its silence no longer,
/// and the reboots of a free machine count anew.
pub(crate) fn came_back(machine: &mut Machine) {
    if machine.step_attempts == 0 {
        return;
    }
    match machine.phase {
        Phase::Wiping | Phase::Waiting => {
            machine.step_attempts = 0;
            machine.reason = resting_reason(machine).to_owned();
        }
        // The attempts stay: a tenant waits, and a machine that falls silent again and again must
        // be held in the end.
        Phase::Installing => machine.reason.clear(),
        _ => {}
    }
}

/// Renews the resting reason of a free machine after its size changed.
pub(crate) fn size_changed(machine: &mut Machine) {
    if machine.phase == Phase::Waiting && machine.step_attempts == 0 {
        machine.reason = resting_reason(machine).to_owned();
    }
}

/// The reason why a healthy waiting machine is not on offer; empty if it is.
pub(crate) fn resting_reason(machine: &Machine) -> &'static str {
    match (machine.phase, &machine.size) {
        (Phase::Waiting, None) => "no size matches the hardware, or more than one does",
        _ => "",
    }
}

/// Hands the ports over to the tenant at hammer's last event.
pub(crate) fn leaves_hammer(machine: &mut Machine, now: Timestamp) {
    let installed = machine
        .allocation
        .as_ref()
        .is_some_and(|a| a.install.installed_at.is_some());
    // A leftover event of an earlier boot must not hand ports over: image and phase have to agree.
    if installed && matches!(machine.phase, Phase::BootOrder | Phase::Rebooting) {
        if machine.phase == Phase::BootOrder {
            enter(machine, PhaseEvent::HammerLeft, now, "");
        }
        machine.segment = Segment::Tenant;
    }
}

/// The refusal of an action that the machine's phase does not allow; `verb` is a participle.
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn revivals_of_a_free_machine_count_anew_when_it_is_heard() {
        for (phase, attempts) in [
            (Phase::Wiping, 0),
            (Phase::Waiting, 0),
            (Phase::Installing, 2),
        ] {
            let seen = Machine::seen(MachineId::new(Uuid::nil()), None, Timestamp::ZERO);
            let mut machine = Machine {
                phase,
                step_attempts: 2,
                reason: "silent".into(),
                ..seen
            };
            came_back(&mut machine);
            assert_eq!(machine.step_attempts, attempts, "{phase}");
            assert_ne!(machine.reason, "silent", "{phase}");
        }
    }
}
