//! Reports of wipes of a machine's disks.

use std::collections::BTreeSet;

use crate::machine::apply::lifecycle::{ISSUER, resting_reason, sign_of_life, wrong_phase};
use crate::machine::command::WipeDone;
use crate::machine::entity::{Availability, Condition, Machine, Phase, WIPES_MAX, WipeRecord};
use crate::machine::phase::{PhaseEvent, enter};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Serial numbers that identify the machine's fixed disks across boots. A number that is blank, or
/// that two of the disks have, identifies no disk.
pub(crate) fn known_serials(machine: &Machine) -> BTreeSet<String> {
    let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
    let fixed = machine.hardware.disks.iter().filter(|disk| disk.is_fixed());
    for serial in fixed.map(|disk| disk.serial.trim()) {
        if !once.insert(serial.to_owned()) {
            twice.insert(serial.to_owned());
        }
    }
    once.retain(|serial| !serial.is_empty() && !twice.contains(serial));
    once
}

/// `true` if each fixed disk of the machine is one of these, by its serial number.
pub(crate) fn has_only_disks(machine: &Machine, serials: &BTreeSet<String>) -> bool {
    let known = known_serials(machine);
    let mut fixed = machine.hardware.disks.iter().filter(|disk| disk.is_fixed());
    fixed.all(|disk| {
        let serial = disk.serial.trim();
        known.contains(serial) && serials.contains(serial)
    })
}

/// `true` if a fixed disk may hold data: it was not wiped since the last allocation. Disks may be
/// swapped between boots: one without a serial number cannot be recognised, and is wiped at each
/// boot.
pub(crate) fn has_unknown_disk(machine: &Machine, is_new_boot: bool) -> bool {
    let known = known_serials(machine);
    let mut fixed = machine.hardware.disks.iter().filter(|disk| disk.is_fixed());
    fixed.any(|disk| match disk.serial.trim() {
        serial if known.contains(serial) => !machine.clean_disks.contains(serial),
        _ => is_new_boot,
    })
}

/// Takes hammer's report of a wipe: on to the pool, or held.
pub(crate) fn wipe_done(tx: &mut Tx<'_>, op: &WipeDone) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.id)?;
    sign_of_life(tx, op.id);
    // A repeated report after a lost answer: it must not add a second record.
    if machine.phase == Phase::Waiting && !machine.dirty {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    if machine.phase != Phase::Wiping {
        return Err(wrong_phase(&machine, "wiped"));
    }
    let record = WipeRecord {
        at: tx.now,
        disks: op.disks.clone(),
        asked: machine.wipe_level,
    };
    let failure = wipe_failure(&machine, op);
    // The order was for less, and a full wipe is due since: the newer order is on its way to hammer.
    if failure.is_none() && record.level() < machine.wipe_level.unwrap_or_default() {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    machine.wipes.push(record);
    let surplus = machine.wipes.len().saturating_sub(WIPES_MAX);
    machine.wipes.drain(..surplus);

    match failure {
        Some(reason) => {
            // Tainted as well as held: the next registration ends the hold of an available machine,
            // and an operator has to look at the disk first.
            machine.condition = Condition {
                state: Availability::Tainted,
                description: reason.chars().take(256).collect(),
                issuer: ISSUER.into(),
            };
            enter(&mut machine, PhaseEvent::WipeFailed, tx.now, reason);
            Ok(Reply::Machine(tx.update(machine)))
        }
        None => {
            machine.clean_disks = known_serials(&machine);
            machine.dirty = false;
            enter(&mut machine, PhaseEvent::Wiped, tx.now, "");
            machine.reason = resting_reason(&machine).to_owned();
            Ok(Reply::Machine(tx.save(machine)))
        }
    }
}

/// The reason why the disks are not all clean: a wipe failed, or a disk is missing in the report.
/// `None` means that all are clean.
fn wipe_failure(machine: &Machine, op: &WipeDone) -> Option<String> {
    let failed = op.disks.iter().find_map(|disk| {
        let error = disk.error.as_deref().filter(|error| !error.is_empty())?;
        Some(format!(
            "wiping {} (serial \"{}\") failed: {error}",
            disk.name, disk.serial
        ))
    });
    let missing = || {
        let fixed = machine.hardware.disks.iter().filter(|disk| disk.is_fixed());
        fixed
            // By name: it is unique within a boot, and not every disk has a serial number.
            .filter(|disk| !op.disks.iter().any(|wiped| wiped.name == disk.name))
            .map(|disk| format!("disk {} was not wiped", disk.name))
            .next()
    };
    failed.or_else(missing)
}
