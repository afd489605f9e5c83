//! Deadlines of phases: what happens to a machine that stays in one for too long.

use proto_errors::Error;
use proto_types::{MachineId, Timestamp};

use crate::cluster::command::Tick;
use crate::cluster::read::{reconciled_at, restored};
use crate::machine::apply::liveliness::is_observed;
use crate::machine::apply::{boots, events, handover, reclaim};
use crate::machine::entity::{Availability, EventLog, Machine, Phase, Segment};
use crate::machine::phase::{
    self, Clock, Deadline, PhaseEvent, STEP_ATTEMPTS_MAX, Transition, enter,
};
use crate::machine::read::is_left_alone;
use crate::tables::{Tables, Tx};

/// As [`deadline`] decides.
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
        // A partition that was cut off, or a new leader, has its time from the start.
        let since = match deadline.clock {
            Clock::InPhase => machine.since,
            Clock::Silence => silent_since(tables, op, machine),
        };
        now.since_ms(since) >= deadline.after_ms
    };
    phase::deadlines(machine.phase)
        .find(|row| row.guard.holds(machine) && row.deadline.is_some_and(is_over))
}

/// The port is the tenant's, so that hammer is gone: what it was given ends.
fn has_left_hammer(machine: &Machine) -> bool {
    machine.phase == Phase::Rebooting && machine.segment == Segment::Tenant
}

/// Machines in a phase that has an end, and may have come to it.
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
                && machine.since < now
                && !is_left_alone(machine)
                && is_observed(machine.partition.as_ref(), op)
        })
}

pub(crate) fn deadlines(tx: &mut Tx<'_>, op: &Tick) -> Result<(), Error> {
    let due: Vec<MachineId> = waiting(tx.tables(), op, tx.now)
        .map(|machine| machine.id)
        .collect();
    for id in due {
        deadline(tx, op, id)?;
    }
    Ok(())
}

fn deadline(tx: &mut Tx<'_>, op: &Tick, id: MachineId) -> Result<(), Error> {
    let mut machine: Machine = tx.require(&id)?;
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
        PhaseEvent::PortsNeverMoved => reclaim::hold_for_ports(tx, machine),
        PhaseEvent::PortsLate => {
            machine.reason = reclaim::unmoved_reason(tx.tables(), &machine);
            tx.save(machine);
        }
        PhaseEvent::Silent | PhaseEvent::SilentForGood => revive(tx, op, machine, row)?,
        _ => {}
    }
    Ok(())
}

fn silent_since(tables: &Tables, op: &Tick, machine: &Machine) -> Timestamp {
    let log = tables.get::<EventLog>(&machine.id);
    let planned = log
        .and_then(|log| log.events.last())
        .map_or(Timestamp::ZERO, |e| e.time);
    let heard = op.heard.get(&machine.id).copied().unwrap_or_default();
    let last = log.map_or(Timestamp::ZERO, |log| log.last_event_time);
    last.max(heard)
        .max(planned)
        .max(machine.since)
        .max(op.listening_since)
        .max(reconciled_at(tables))
}

/// Reboots a machine that says nothing; holds it when that does not help.
fn revive(tx: &mut Tx<'_>, op: &Tick, mut machine: Machine, row: &Transition) -> Result<(), Error> {
    let is_locked = machine.condition.state == Availability::Locked;
    if is_locked || machine.partition.is_none() {
        return Ok(());
    }
    if row.event == PhaseEvent::Silent {
        let silence = tx.now.since_ms(silent_since(tx.tables(), op, &machine));
        let id = machine.id;
        machine.step_attempts += 1;
        machine.reason = format!("silent for {} min, rebooted by its BMC", silence / 60_000);
        tx.save(machine);
        return reclaim::nudge(tx, id, "silent for too long");
    }
    let reason = format!("did not come up, rebooted {STEP_ATTEMPTS_MAX} times");
    if row.next == machine.phase {
        // Dead and not on offer: its liveliness says so.
        machine.reason = reason;
    } else {
        enter(&mut machine, row.event, tx.now, reason);
    }
    tx.save(machine);
    Ok(())
}
