//! Deadlines of phases: what happens to a machine that stays in one for too long.

use proto_errors::Error;
use proto_types::{MachineId, Timestamp};

use crate::cluster::command::Tick;
use crate::cluster::read::{reconciled_at, restored};
use crate::machine::apply::liveliness::is_observed;
use crate::machine::apply::{boots, events, handover, reclaim};
use crate::machine::entity::{Availability, EventLog, HoldCause, Machine, Phase, Segment};
use crate::machine::read::is_left_alone;
use crate::tables::{Tables, Tx};

/// A machine that shall come up for a tenant or after a reclaim is rebooted after so much
/// silence, milliseconds.
pub(crate) const NUDGE_AFTER_MS: u64 = 15 * 60_000;
/// A machine that nobody has is rebooted after so much silence, milliseconds.
pub(crate) const RESURRECT_AFTER_MS: u64 = 60 * 60_000;
/// Hammer is told to reboot at the latest so long after an installation, milliseconds.
const BOOT_ORDER_MS: u64 = 30_000;
/// An installed system that does not phone home for so long is worth a remark, milliseconds.
const FIRST_PHONE_HOME_MS: u64 = 30 * 60_000;

type Step = std::result::Result<(), Error>;

/// As [`deadline`] decides, or more often.
pub(crate) fn may_be_due(tables: &Tables, op: &Tick, machine: &Machine, now: Timestamp) -> bool {
    let waited = now.since_ms(machine.since);
    let silence = || now.since_ms(silent_since(tables, op, machine));
    match machine.phase {
        Phase::BootOrder => waited >= BOOT_ORDER_MS,
        Phase::Rebooting => {
            (waited >= FIRST_PHONE_HOME_MS && machine.reason.is_empty())
                || handover::is_awaited(machine, waited)
                || (has_left_hammer(machine) && boots::is_open(tables, machine.id))
        }
        Phase::ReclaimPorts => waited >= reclaim::PORTS_MS,
        Phase::Installing | Phase::ReclaimRegister => silence() >= NUDGE_AFTER_MS,
        Phase::Wiping | Phase::Waiting => silence() >= RESURRECT_AFTER_MS,
        _ => false,
    }
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
                && !matches!(machine.phase, Phase::New | Phase::Running | Phase::Held(_))
                && machine.since < now
                && !is_left_alone(tables, machine)
                && is_observed(machine.partition.as_ref(), op)
        })
}

pub(crate) fn deadlines(tx: &mut Tx<'_>, op: &Tick) -> Step {
    let due: Vec<MachineId> = waiting(tx.tables(), op, tx.now)
        .map(|machine| machine.id)
        .collect();
    for id in due {
        deadline(tx, op, id)?;
    }
    Ok(())
}

fn deadline(tx: &mut Tx<'_>, op: &Tick, id: MachineId) -> Step {
    let mut machine: Machine = tx.require(&id)?;
    if has_left_hammer(&machine) {
        boots::end(tx, id, events::INSTALLED);
    }
    // A partition that was cut off, or a new leader, has its time from the start.
    let waited = tx.now.since_ms(machine.since);
    match machine.phase {
        Phase::BootOrder if waited >= BOOT_ORDER_MS => {
            let reason = "the BMC did not confirm the boot device in time";
            machine.enter(Phase::Rebooting, tx.now, reason);
            tx.save(machine);
        }
        Phase::Rebooting if waited >= FIRST_PHONE_HOME_MS && machine.reason.is_empty() => {
            machine.reason = "the installed system has not phoned home".into();
            tx.save(machine);
        }
        Phase::Rebooting if handover::is_awaited(&machine, waited) => handover::chase(tx, machine)?,
        Phase::ReclaimPorts if waited >= reclaim::PORTS_HOLD_MS => {
            reclaim::hold_for_ports(tx, machine);
        }
        Phase::ReclaimPorts if waited >= reclaim::PORTS_MS => {
            machine.reason = reclaim::unmoved_reason(tx.tables(), &machine);
            tx.save(machine);
        }
        Phase::Installing | Phase::ReclaimRegister => {
            nudge_after(tx, op, machine, NUDGE_AFTER_MS)?;
        }
        Phase::Wiping | Phase::Waiting => nudge_after(tx, op, machine, RESURRECT_AFTER_MS)?,
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
fn nudge_after(tx: &mut Tx<'_>, op: &Tick, mut machine: Machine, after_ms: u64) -> Step {
    let silence = tx.now.since_ms(silent_since(tx.tables(), op, &machine));
    let is_locked = machine.condition.state == Availability::Locked;
    if silence < after_ms || is_locked || machine.partition.is_none() {
        return Ok(());
    }
    if machine.step_attempts < reclaim::STEP_ATTEMPTS_MAX {
        let id = machine.id;
        machine.step_attempts += 1;
        machine.reason = format!("silent for {} min, rebooted by its BMC", silence / 60_000);
        tx.save(machine);
        return reclaim::nudge(tx, id, "silent for too long");
    }
    let reason = format!(
        "did not come up, rebooted {} times",
        reclaim::STEP_ATTEMPTS_MAX
    );
    match machine.phase {
        Phase::Installing => machine.enter(Phase::Held(HoldCause::Install), tx.now, reason),
        Phase::ReclaimRegister => machine.enter(Phase::Held(HoldCause::Bmc), tx.now, reason),
        // Dead and not on offer: its liveliness says so.
        _ => machine.reason = reason,
    }
    tx.save(machine);
    Ok(())
}
