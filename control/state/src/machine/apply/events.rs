//! Events of machines and their effect on the phase.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, MachineId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::catalog::entity::Partition;
use crate::cluster::read::restored;
use crate::machine::apply::event_log::{advance, failed};
use crate::machine::apply::{boots, lifecycle, links, reclaim, relayed_port, strangers};
use crate::machine::command::{MachineEvent, MachineSeen};
use crate::machine::entity::{EVENTS_TOLD_MAX, EventKind, EventLog, Machine, Phase, Segment};
use crate::machine::read::cables::concerned::concerned;
use crate::machine::read::{BootTarget, boot_target};
use crate::node::apply::unconfirmed::end_unconfirmed;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Reason of the end of hammer's credentials when the installed system takes over.
pub(crate) const INSTALLED: &str = "the machine is installed";

/// Writes an event into the machine's log; the machine must exist.
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

/// The event log of a machine, or an empty one.
fn log_of(tx: &Tx<'_>, machine: MachineId) -> Arc<EventLog> {
    let log = tx.get::<EventLog>(&machine).cloned();
    log.unwrap_or_else(|| Arc::new(EventLog::new(machine)))
}

/// `true` if the sender reported the same event before, word for word: the answer was lost. The
/// time is compared as the sender stated it, because the recorded one is clamped.
fn was_told(tx: &Tx<'_>, machine: MachineId, event: &[&str]) -> bool {
    let log = tx.get::<EventLog>(&machine);
    log.is_some_and(|log| log.told.contains(&fingerprint(event)))
}

/// Remembers the fingerprint of an event; beyond [`EVENTS_TOLD_MAX`] the oldest are dropped.
fn remember_told(tx: &mut Tx<'_>, machine: MachineId, event: &[&str]) -> Arc<EventLog> {
    let mut log = EventLog::clone(&log_of(tx, machine));
    log.told.push(fingerprint(event));
    let surplus = log.told.len().saturating_sub(EVENTS_TOLD_MAX);
    log.told.drain(..surplus);
    tx.save(log)
}

/// The first eight bytes of the SHA-256 of the parts.
fn fingerprint(parts: &[&str]) -> u64 {
    // Each part is preceded by its length: "ab", "c" must differ from "a", "bc".
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

/// Records why an order was not carried out.
pub(crate) fn record_failure(tx: &mut Tx<'_>, machine: MachineId, message: &str) {
    let log = log_of(tx, machine);
    tx.save(failed(&log, EventKind::PlannedReboot, message, tx.now));
}

/// The machine that asked for a boot, and `true` if it is new.
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

/// Takes a boot request that pixie answered.
pub(crate) fn seen(tx: &mut Tx<'_>, op: &MachineSeen) -> ApplyResult {
    let (mut machine, is_new) = machine_of_boot(tx, op)?;
    end_unconfirmed(tx, &mut machine);
    let told = told_boot(op);
    let told: Option<Vec<&str>> = told
        .as_ref()
        .map(|told| told.iter().map(String::as_str).collect());
    if told.as_ref().is_some_and(|told| was_told(tx, op.id, told)) {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    // The target of before the change: the answer that pixie gave was made from it.
    let target = boot_target(tx.tables(), op.id);
    if let Some(mac) = op.mac {
        remember_mac(&mut machine, mac);
    }
    let mut again = BTreeSet::new();
    if relayed_port::note(tx, &mut machine, op) && !is_new {
        again = concerned(tx.tables(), &machine);
        links::take(tx, &mut machine, false);
    }
    // The machine boots on its way to the disk, so that hammer is gone even if its last event was
    // lost. A boot from before the phase is hammer's own, reported late, and proves nothing.
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
    if !again.is_empty() {
        again.append(&mut concerned(tx.tables(), &machine));
        links::take_again(tx, again);
    }
    if let Some(told) = &told {
        remember_told(tx, op.id, told);
    }
    let log = tx.get::<EventLog>(&op.id);
    let last = log.map_or(Timestamp::ZERO, |log| log.last_event_time);
    // Judged before this boot is recorded, which would be the last word itself.
    let is_astray = op.to_disk && log.is_none_or(|log| is_last_word(log, op.seen_at));
    if target == BootTarget::Disk {
        lifecycle::sign_of_life(tx, op.id);
        return Ok(Reply::Machine(machine));
    }
    // Pixie keeps boots while control is away: one older than the last event would throw the event
    // machine back and count as a crash loop.
    if op.seen_at >= last {
        record(tx, op.id, EventKind::PxeBooting, "", op.seen_at);
    }
    if is_astray && restored(tx.tables()).is_none() {
        reclaim::astray(tx, op.id)?;
    }
    Ok(Reply::Machine(machine))
}

/// The parts that identify a repeated report of a boot; `None` if the boot server does not state
/// its time.
fn told_boot(op: &MachineSeen) -> Option<[String; 3]> {
    let stated_at = op.stated_at?.ms().to_string();
    let mac = op.mac.map(|mac| mac.to_string()).unwrap_or_default();
    // Pixie may report a boot twice, once more after it sent the machine to its disk: the second
    // report says more and is no repetition.
    let kind = if op.to_disk { "disk" } else { "seen" };
    Some([kind.to_owned(), mac, stated_at])
}

/// `true` if no event of the machine is later than a boot. The boot itself may be recorded: pixie
/// reports it again if the answer was lost.
fn is_last_word(log: &EventLog, booted: Timestamp) -> bool {
    log.events.last().is_none_or(|last| match last.kind {
        EventKind::PxeBooting => booted >= last.time,
        _ => booted > last.time,
    })
}

/// Most MAC addresses remembered of a machine that did not register; further ones are not kept, and
/// get no ticket.
const BOOT_MACS_MAX: usize = 16;

/// Remembers the address of a boot until the inventory lists the NICs. Later an unknown address may
/// be a stranger's that claims the machine's UUID: it is not remembered, and gets no ticket.
fn remember_mac(machine: &mut Machine, mac: MacAddr) {
    if machine.hardware.nics.is_empty() && machine.boot_macs.len() < BOOT_MACS_MAX {
        machine.boot_macs.insert(mac);
    }
}

/// Takes an event that hammer reports.
pub(crate) fn event(tx: &mut Tx<'_>, op: &MachineEvent) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.id)?;
    // A repeated event must not count twice: reported again, a `Preparing` would look like a crash
    // loop.
    let told = [op.kind.as_str(), &op.time.ms().to_string(), &op.message];
    if was_told(tx, op.id, &told) {
        return Ok(Reply::EventLog(log_of(tx, op.id)));
    }
    record(tx, op.id, op.kind, &op.message, op.time);
    let log = remember_told(tx, op.id, &told);
    // An order to the BMC is no sign of life of the machine: a dead one would count as back.
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
            // The session's certificate stays until the next tick, so that hammer gets the answer
            // to this very call.
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
