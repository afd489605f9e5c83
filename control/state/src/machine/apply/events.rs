//! Events, and what they do to the phase of a machine.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, MachineId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::catalog::entity::Partition;
use crate::cluster::read::restored;
use crate::machine::apply::event_log::{advance, failed};
use crate::machine::apply::{boots, lifecycle, reclaim, strangers};
use crate::machine::command::{MachineEvent, MachineSeen, PhoneHome};
use crate::machine::entity::{EVENTS_TOLD_MAX, EventKind, EventLog, Machine, Phase, Segment};
use crate::machine::phase::{PhaseEvent, enter, transition_of};
use crate::machine::read::{BootTarget, boot_target};
use crate::reply::Reply;
use crate::tables::Tx;

/// Why hammer's boot ends when the installed system takes over.
pub(crate) const INSTALLED: &str = "the machine is installed";

/// Writes an event; the machine must be there.
pub(crate) fn record(
    tx: &mut Tx<'_>,
    machine: MachineId,
    kind: EventKind,
    message: &str,
    sent: Timestamp,
) -> Arc<EventLog> {
    let log = log_of(tx, machine);
    let next = advance(&log, kind, message, sent, tx.now);
    tx.save(next)
}

fn log_of(tx: &Tx<'_>, machine: MachineId) -> Arc<EventLog> {
    let log = tx.get::<EventLog>(&machine).cloned();
    log.unwrap_or_else(|| Arc::new(EventLog::new(machine)))
}

/// `true` if the sender told the same before, word for word: the answer was lost. The sender's
/// clock may be wrong, so that what it states is compared, and not what is recorded.
fn was_told(tx: &Tx<'_>, machine: MachineId, event: &[&str]) -> bool {
    let log = tx.get::<EventLog>(&machine);
    log.is_some_and(|log| log.told.contains(&fingerprint(event)))
}

fn remember_told(tx: &mut Tx<'_>, machine: MachineId, event: &[&str]) -> Arc<EventLog> {
    let mut log = EventLog::clone(&log_of(tx, machine));
    log.told.push(fingerprint(event));
    let surplus = log.told.len().saturating_sub(EVENTS_TOLD_MAX);
    log.told.drain(..surplus);
    tx.save(log)
}

/// The first eight bytes of the SHA-256 of the parts.
fn fingerprint(parts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(8)
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Writes why an order was not carried out.
pub(crate) fn record_failure(tx: &mut Tx<'_>, machine: MachineId, message: &str) {
    let log = log_of(tx, machine);
    tx.save(failed(&log, EventKind::PlannedReboot, message, tx.now));
}

/// The machine that asked for a boot, and `true` if it is a new one.
fn machine_of_boot(tx: &Tx<'_>, op: &MachineSeen) -> Result<(Machine, bool), Error> {
    tx.tables().require::<Partition>(&op.partition)?;
    let Some(known) = tx.get::<Machine>(&op.id) else {
        strangers::check_room(tx, &op.partition, op.mac)?;
        let mut machine = Machine::seen(op.id, Some(op.partition.clone()), tx.now);
        machine.first_mac = op.mac;
        return Ok((machine, true));
    };
    let mut machine = Machine::clone(known);
    let partition = machine
        .partition
        .get_or_insert_with(|| op.partition.clone());
    if *partition == op.partition {
        return Ok((machine, false));
    }
    let message = format!(
        "machine \"{}\" is not in partition \"{}\"",
        op.id, op.partition
    );
    Err(Error::new(ErrorCode::MachineForeign, message)
        .object("machine", op.id)
        .hint("if it was moved, an admin deletes it first"))
}

pub(crate) fn seen(tx: &mut Tx<'_>, op: &MachineSeen) -> Result<Reply, Error> {
    let (mut machine, is_new) = machine_of_boot(tx, op)?;
    let told = told_boot(op);
    let told: Option<Vec<&str>> = told
        .as_ref()
        .map(|told| told.iter().map(String::as_str).collect());
    if told.as_ref().is_some_and(|told| was_told(tx, op.id, told)) {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    let target = boot_target(tx.tables(), op.id);
    if let Some(mac) = op.mac {
        remember_mac(&mut machine, mac);
    }
    // On its way to the disk, whether or not hammer's last words were heard. A boot of before is
    // hammer's own, told late.
    let left = machine.phase == Phase::Rebooting && op.seen_at >= machine.since;
    if left && target == BootTarget::Disk {
        machine.segment = Segment::Tenant;
        boots::end(tx, op.id, INSTALLED);
    }
    let machine = if is_new {
        tx.create(machine)?
    } else {
        tx.save(machine)
    };

    if let Some(told) = &told {
        remember_told(tx, op.id, told);
    }
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
    if is_astray && restored(tx.tables()).is_none() {
        reclaim::astray(tx, op.id)?;
    }
    Ok(Reply::Machine(machine))
}

/// The parts by which a boot is known when a boot server tells it again; `None` when the boot
/// server does not state its time.
fn told_boot(op: &MachineSeen) -> Option<[String; 3]> {
    let stated_at = op.stated_at?.ms().to_string();
    let mac = op.mac.map(|mac| mac.to_string()).unwrap_or_default();
    // The second telling of a boot, after the machine was sent to its disk, says more.
    let kind = if op.to_disk { "disk" } else { "seen" };
    Some([kind.to_owned(), mac, stated_at])
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

pub(crate) fn event(tx: &mut Tx<'_>, op: &MachineEvent) -> Result<Reply, Error> {
    let mut machine: Machine = tx.require(&op.id)?;
    let told = [op.kind.as_str(), &op.time.ms().to_string(), &op.message];
    if was_told(tx, op.id, &told) {
        return Ok(Reply::EventLog(log_of(tx, op.id)));
    }
    record(tx, op.id, op.kind, &op.message, op.time);
    let log = remember_told(tx, op.id, &told);
    // An order to its BMC is no word of the machine's own.
    if !matches!(
        op.kind,
        EventKind::PlannedReboot | EventKind::MachineReclaim
    ) {
        lifecycle::came_back(&mut machine);
    }
    match op.kind {
        EventKind::Installing if machine.phase == Phase::Installing => {
            if let Some(allocation) = &mut machine.allocation {
                allocation.install.begun = true;
            }
        }
        EventKind::BootingNewKernel => {
            lifecycle::leaves_hammer(&mut machine, tx.now);
            // Its session goes on until the next tick, so that it hears the answer.
            if machine.segment == Segment::Tenant {
                boots::end_tokens(tx, op.id);
            }
        }
        EventKind::Crashed if machine.phase == Phase::Wiping => {
            machine.reason = format!("hammer crashed: {}", op.message);
        }
        _ => {}
    }
    tx.save(machine);
    Ok(Reply::EventLog(log))
}

pub(crate) fn phone_home(tx: &mut Tx<'_>, op: &PhoneHome) -> Result<Reply, Error> {
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
    if transition_of(&machine, PhaseEvent::PhonedHome).is_some() {
        enter(&mut machine, PhaseEvent::PhonedHome, tx.now, "");
        tx.save(machine);
        boots::end(tx, op.id, INSTALLED);
    }
    Ok(Reply::EventLog(log))
}
