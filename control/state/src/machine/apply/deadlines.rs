//! Deadlines of phases: the steps for a machine that stays in one too long.

use proto_errors::Error;
use proto_types::{MachineId, Timestamp};

use crate::cluster::command::Tick;
use crate::cluster::read::{reconciled_at, restored};
use crate::machine::apply::liveliness::is_observed;
use crate::machine::apply::{boots, events, handover, ports, reclaim};
use crate::machine::entity::{Availability, EventLog, Machine, Phase, Segment};
use crate::machine::phase::{
    self, Deadline, DeadlineClock, PhaseEvent, STEP_ATTEMPTS_MAX, Transition, enter,
};
use crate::machine::read::is_left_alone;
use crate::tables::{Tables, Tx};

/// `true` if [`deadline`] would change the machine. The leader asks before it proposes a tick, so
/// that idle ticks write no log entry.
pub(crate) fn may_be_due(tables: &Tables, op: &Tick, machine: &Machine, now: Timestamp) -> bool {
    due(tables, op, machine, now).is_some()
        || (has_left_hammer(machine) && boots::is_open(tables, machine.id))
}

/// The row of the table of phases whose deadline has passed.
fn due(
    tables: &Tables,
    op: &Tick,
    machine: &Machine,
    now: Timestamp,
) -> Option<&'static Transition> {
    let is_over = |deadline: Deadline| {
        // The clock of silence restarts with a new leader, which has heard nobody yet: otherwise
        // each failover would reboot machines.
        let since = match deadline.clock {
            DeadlineClock::InPhase => machine.since,
            DeadlineClock::Silence => silent_since(tables, op, machine),
        };
        now.since_ms(since) >= deadline.after_ms
    };
    phase::deadlines(machine.phase)
        .find(|row| row.guard.holds(machine) && row.deadline.is_some_and(is_over))
}

/// `true` if the ports are the tenant's, so that hammer is gone and its credentials must end.
fn has_left_hammer(machine: &Machine) -> bool {
    machine.phase == Phase::Rebooting && machine.segment == Segment::Tenant
}

/// Machines in a phase with a deadline that may be judged: neither locked, nor in a partition that
/// is cut off, nor in a restored state that waits for its operator.
pub(crate) fn waiting<'a>(
    tables: &'a Tables,
    op: &'a Tick,
    now: Timestamp,
) -> impl Iterator<Item = &'a Machine> {
    let is_held = restored(tables).is_some();
    tables
        .all::<Machine>()
        .map(AsRef::as_ref)
        .filter(move |machine| {
            !is_held
                && phase::deadlines(machine.phase).next().is_some()
                // A machine that entered its phase in this entry is not judged by it.
                && machine.since < now
                && !is_left_alone(machine)
                && is_observed(machine.partition.as_ref(), op)
        })
}

/// Handles every deadline that is due.
pub(crate) fn deadlines(tx: &mut Tx<'_>, op: &Tick) -> Result<(), Error> {
    let due: Vec<MachineId> = waiting(tx.tables(), op, tx.now)
        .map(|machine| machine.id)
        .collect();
    for id in due {
        deadline(tx, op, id)?;
    }
    Ok(())
}

/// Handles the first deadline of a machine that is due.
fn deadline(tx: &mut Tx<'_>, op: &Tick, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
    // Not at hammer's last event: its session needs the credentials until it has read the answer.
    if has_left_hammer(&machine) {
        boots::end(tx, id, events::INSTALLED);
    }
    let Some(row) = due(tx.tables(), op, &machine, tx.now) else {
        return Ok(());
    };
    match row.event {
        PhaseEvent::BootOrderLate => {
            let reason = "the BMC did not confirm the boot device in time";
            enter(&mut machine, row.event, tx.now, reason);
            tx.save(machine);
        }
        PhaseEvent::NotPhonedHome => {
            machine.reason = "the installed system has not phoned home".into();
            tx.save(machine);
        }
        PhaseEvent::HandoverLate => handover::chase(tx, machine)?,
        PhaseEvent::PortsNeverMoved => reclaim::stop_waiting_for_ports(tx, machine),
        PhaseEvent::PortsLate => {
            machine.reason = ports::unmoved_reason(tx.tables(), &machine);
            tx.save(machine);
        }
        PhaseEvent::Silent | PhaseEvent::SilentForGood => revive(tx, op, machine, row)?,
        _ => {}
    }
    Ok(())
}

/// Time from which a machine's silence counts: its last sign of life, planned reboot or phase
/// change, and not before this leader began to listen or the state was reconciled.
fn silent_since(tables: &Tables, op: &Tick, machine: &Machine) -> Timestamp {
    let log = tables.get::<EventLog>(&machine.id);
    // The last event may be an order to the BMC: a machine that was just rebooted gets the whole
    // time to come up, or the next tick would reboot it again.
    let planned = log
        .and_then(|log| log.events.last())
        .map_or(Timestamp::ZERO, |event| event.time);
    let heard = op.heard.get(&machine.id).copied().unwrap_or_default();
    let last = log.map_or(Timestamp::ZERO, |log| log.last_event_time);
    last.max(heard)
        .max(planned)
        .max(machine.since)
        .max(op.listening_since)
        .max(reconciled_at(tables))
}

/// Reboots a silent machine. After [`STEP_ATTEMPTS_MAX`] reboots it is held, or left with a reason
/// if nobody waits for it.
fn revive(tx: &mut Tx<'_>, op: &Tick, mut machine: Machine, row: &Transition) -> Result<(), Error> {
    let is_locked = machine.condition.state == Availability::Locked;
    if is_locked || machine.partition.is_none() {
        return Ok(());
    }
    if row.event == PhaseEvent::Silent {
        let silence = tx.now.since_ms(silent_since(tx.tables(), op, &machine));
        let id = machine.id;
        // Counted in the machine, so that the bound holds across restarts and leaders.
        machine.step_attempts += 1;
        machine.reason = format!("silent for {} min, rebooted by its BMC", silence / 60_000);
        tx.save(machine);
        return reclaim::nudge(tx, id, "silent for too long");
    }
    let reason = format!("did not come up, rebooted {STEP_ATTEMPTS_MAX} times");
    if row.next == machine.phase {
        // No tenant waits, and a dead machine is not on offer anyway: no hold, so that it is back
        // without an operator as soon as it is heard.
        machine.reason = reason;
    } else {
        enter(&mut machine, row.event, tx.now, reason);
    }
    tx.save(machine);
    Ok(())
}
