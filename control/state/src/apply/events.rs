//! Events, and what they do to the phase of a machine.

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, MachineId, Timestamp};

use super::node::feature_level;
use super::{lifecycle, reclaim};
use crate::command::{MachineEvent, MachineSeen, PhoneHome, REPEAT_LEVEL};
use crate::entities::{EventKind, EventLog, Machine, Partition, Phase, Segment};
use crate::life::events::{advance, failed};
use crate::life::{BootTarget, boot_target};
use crate::reply::Reply;
use crate::tables::Tx;

type Result = std::result::Result<Reply, Error>;

/// Writes an event; the machine must be there.
pub(super) fn record(
    tx: &mut Tx<'_>,
    machine: MachineId,
    kind: EventKind,
    message: &str,
    sent: Timestamp,
) -> std::sync::Arc<EventLog> {
    let log = tx.get::<EventLog>(&machine).map(|log| EventLog::clone(log));
    let log = log.unwrap_or_else(|| EventLog::new(machine));
    let next = advance(&log, kind, message, sent, tx.now);
    tx.save(next)
}

/// Writes why an order was not carried out.
pub(super) fn record_failure(tx: &mut Tx<'_>, machine: MachineId, message: &str) {
    let log = tx.get::<EventLog>(&machine).map(|log| EventLog::clone(log));
    let log = log.unwrap_or_else(|| EventLog::new(machine));
    tx.save(failed(&log, EventKind::PlannedReboot, message, tx.now));
}

pub(super) fn seen(tx: &mut Tx<'_>, op: &MachineSeen) -> Result {
    tx.tables().require::<Partition>(&op.partition)?;
    let known = tx
        .get::<Machine>(&op.id)
        .map(|machine| Machine::clone(machine));
    let is_new = known.is_none();
    let mut machine =
        known.unwrap_or_else(|| Machine::seen(op.id, Some(op.partition.clone()), tx.now));
    if machine
        .partition
        .get_or_insert_with(|| op.partition.clone())
        != &op.partition
    {
        let message = format!(
            "machine \"{}\" is not in partition \"{}\"",
            op.id, op.partition
        );
        return Err(Error::new(ErrorCode::MachineForeign, message)
            .object("machine", op.id)
            .hint("if it was moved, an admin deletes it first"));
    }
    let target = boot_target(tx.tables(), op.id);
    if let Some(mac) = op.mac {
        remember_mac(&mut machine, mac);
    }
    // On its way to the disk, whether or not hammer's last words were heard.
    if machine.phase == Phase::Rebooting && target == BootTarget::Disk {
        machine.segment = Segment::Tenant;
    }
    let machine = if is_new {
        tx.create(machine)?
    } else {
        tx.save(machine)
    };

    let log = tx.get::<EventLog>(&op.id);
    let last = log.map_or(Timestamp::ZERO, |log| log.last_event_time);
    let is_astray = op.to_disk && log.is_none_or(|log| is_last_word(log, op.seen_at));
    if target == BootTarget::Disk {
        lifecycle::sign_of_life(tx, op.id);
        return Ok(Reply::Machine(machine));
    }
    // What pixie kept while control was away may be older than what came after it.
    if op.seen_at >= last {
        record(tx, op.id, EventKind::PxeBooting, "", op.seen_at);
    }
    if is_astray {
        reclaim::astray(tx, op.id)?;
    }
    Ok(Reply::Machine(machine))
}

/// Whether nothing is known of a machine after a boot. The boot itself may be: pixie tells it
/// again when it did not get the answer.
fn is_last_word(log: &EventLog, booted: Timestamp) -> bool {
    log.events.last().is_none_or(|last| match last.kind {
        EventKind::PxeBooting => booted >= last.time,
        _ => booted > last.time,
    })
}

/// How many addresses are remembered that a machine asked from.
const BOOT_MACS_MAX: usize = 16;

/// Only until the inventory tells the cards: later an unknown one may be somebody who claims the
/// machine's UUID, and gets no ticket.
fn remember_mac(machine: &mut Machine, mac: MacAddr) {
    if machine.hardware.nics.is_empty() && machine.boot_macs.len() < BOOT_MACS_MAX {
        machine.boot_macs.insert(mac);
    }
}

pub(super) fn event(tx: &mut Tx<'_>, op: &MachineEvent) -> Result {
    let mut machine: Machine = tx.require(&op.id)?;
    if let Some(log) = told_before(tx, op) {
        return Ok(Reply::EventLog(log));
    }
    let log = record(tx, op.id, op.kind, &op.message, op.time);
    match op.kind {
        EventKind::Installing if machine.phase == Phase::Installing => {
            if let Some(allocation) = &mut machine.allocation {
                allocation.install.begun = true;
            }
        }
        EventKind::BootingNewKernel => lifecycle::leaves_hammer(&mut machine, tx.now),
        EventKind::Crashed if machine.phase == Phase::Wiping => {
            machine.reason = format!("hammer crashed: {}", op.message);
        }
        _ => {}
    }
    tx.save(machine);
    Ok(Reply::EventLog(log))
}

/// The log, when this event is the last of it: the answer was lost, and the sender told it again.
fn told_before(tx: &Tx<'_>, op: &MachineEvent) -> Option<std::sync::Arc<EventLog>> {
    let log = tx.get::<EventLog>(&op.id)?;
    let last = log.events.last()?;
    let same = (last.kind, last.time) == (op.kind, op.time) && last.message == op.message;
    (same && feature_level(tx.tables()) >= REPEAT_LEVEL).then(|| std::sync::Arc::clone(log))
}

pub(super) fn phone_home(tx: &mut Tx<'_>, op: &PhoneHome) -> Result {
    let mut machine: Machine = tx.require(&op.id)?;
    let allocation = machine
        .allocation
        .as_ref()
        .filter(|a| a.project == op.project);
    let Some(allocation) = allocation else {
        return Err(Error::new(
            ErrorCode::MachineForeign,
            format!(
                "project \"{}\" does not have machine \"{}\"",
                op.project, op.id
            ),
        )
        .object("machine", op.id));
    };
    if allocation.install.installed_at.is_none() {
        return Err(Error::new(
            ErrorCode::WrongPhase,
            format!("machine \"{}\" is not installed", op.id),
        )
        .object("machine", op.id));
    }
    let log = record(tx, op.id, EventKind::PhonedHome, &op.message, op.time);
    if matches!(machine.phase, Phase::BootOrder | Phase::Rebooting) {
        machine.enter(Phase::Running, tx.now, "");
        machine.segment = Segment::Tenant;
        tx.save(machine);
    }
    Ok(Reply::EventLog(log))
}
