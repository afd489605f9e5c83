//! From the first registration to the running system.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::{MacAddr, MachineId, Timestamp};

use super::orders::order_life;
use super::{events, links};
use crate::command::{InstallDone, MachineSeen, RegisterMachine, WipeDone};
use crate::entities::{
    Availability, Bmc, BmcAction, Condition, EventLog, HoldCause, Install, Liveliness, Machine,
    Phase, Segment, WIPES_MAX, WipeRecord,
};
use crate::hardware::match_size;
use crate::meta::label;
use crate::reply::Reply;
use crate::tables::Tx;

/// How often an installation is begun.
pub const INSTALL_ATTEMPTS_MAX: u32 = 3;
/// Who taints machines that cannot be wiped.
pub(crate) const ISSUER: &str = "metalmesh";
/// How much of hammer's log is kept, bytes.
const LOG_TAIL_MAX: usize = 16 * 1024;

type Result = std::result::Result<Reply, Error>;

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
fn resting_reason(machine: &Machine) -> &'static str {
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
            machine.enter(Phase::Rebooting, now, "");
        }
        machine.segment = Segment::Tenant;
    }
}

/// Serial numbers by which the machine's fixed disks are known again after a boot. A number that
/// is blank, or that two of the disks have, identifies none.
fn known_serials(machine: &Machine) -> BTreeSet<String> {
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

/// `true` if a fixed disk may hold data: it was not wiped since the last allocation. Between boots
/// disks are swapped: one without a serial number is not known again, and is wiped at each boot.
fn has_unknown_disk(machine: &Machine, is_new_boot: bool) -> bool {
    let known = known_serials(machine);
    let mut fixed = machine.hardware.disks.iter().filter(|disk| disk.is_fixed());
    fixed.any(|disk| match disk.serial.trim() {
        serial if known.contains(serial) => !machine.clean_disks.contains(serial),
        _ => is_new_boot,
    })
}

pub(crate) fn register(tx: &mut Tx<'_>, op: &RegisterMachine) -> Result {
    if let Some(partition) = &op.seen_in {
        let seen = MachineSeen {
            id: op.id,
            partition: partition.clone(),
            mac: boot_mac(op),
            seen_at: tx.now,
            stated_at: None,
            to_disk: false,
        };
        events::seen(tx, &seen)?;
    }
    let mut machine: Machine = tx.require(&op.id)?;
    let is_new_boot = machine.boot_id != op.boot_id;
    let mut concerned = links::concerned(tx.tables(), &machine);
    machine.boot_id.clone_from(&op.boot_id);
    if !may_tell(&machine) {
        return register_without_inventory(tx, machine, is_new_boot);
    }
    take_inventory(&mut machine, op);
    links::take(tx, &mut machine, true);
    if machine.allocation.is_none() {
        machine.size = match_size(tx.tables(), &machine.hardware);
        machine.dirty |= has_unknown_disk(&machine, is_new_boot);
    }
    sign_of_life(tx, op.id);
    came_back(&mut machine);
    enter_after_register(&mut machine, is_new_boot, tx.now);
    if machine.phase == Phase::Waiting {
        machine.reason = resting_reason(&machine).to_owned();
    }
    let machine = tx.save(machine);
    concerned.append(&mut links::concerned(tx.tables(), &machine));
    links::take_again(tx, concerned);
    Ok(Reply::Machine(machine))
}

/// Whether hammer runs on it, so that what it tells is what the machine is made of: not on one that
/// is installed, is being powered off, or may not boot.
fn may_tell(machine: &Machine) -> bool {
    match machine.phase {
        Phase::BootOrder | Phase::Rebooting | Phase::Running => false,
        Phase::ReclaimPowerOff | Phase::ReclaimPorts | Phase::Held(HoldCause::Ports) => false,
        Phase::Held(_) => machine.segment != Segment::Isolated || machine.links.is_empty(),
        _ => true,
    }
}

/// A machine that should not be in hammer, or something that has its identity.
fn register_without_inventory(tx: &mut Tx<'_>, mut machine: Machine, is_new_boot: bool) -> Result {
    sign_of_life(tx, machine.id);
    let is_installed = matches!(
        machine.phase,
        Phase::BootOrder | Phase::Rebooting | Phase::Running
    );
    if is_new_boot && is_installed && machine.phase != Phase::Running {
        machine.reason = "hammer booted although the machine is installed".into();
    }
    let machine = tx.save(machine);
    if is_new_boot && is_installed {
        // The installed system did not come up from disk: say so to the BMC once more.
        order_life(tx, &machine, BmcAction::BootDisk)?;
    }
    Ok(Reply::Machine(machine))
}

/// The card that the machine booted from, as its inventory says.
fn boot_mac(op: &RegisterMachine) -> Option<MacAddr> {
    let nics = &op.hardware.nics;
    let boot = nics.iter().find(|nic| nic.boot).or_else(|| nics.first());
    boot.map(|nic| nic.mac)
}

fn take_inventory(machine: &mut Machine, op: &RegisterMachine) {
    machine.hammer_version.clone_from(&op.hammer_version);
    machine.hardware = op.hardware.clone();
    machine.boot_macs.clear();
    machine.bios = op.bios.clone();
    let mut fru = op.fru.clone();
    fru.fill_from(&machine.fru);
    machine.fru = fru;
    if machine.bmc.is_none() && !op.bmc_address.is_empty() {
        machine.bmc = Some(Bmc {
            address: op.bmc_address.clone(),
            mac: op.bmc_mac.clone(),
            version: op.bmc_version.clone(),
            power_state: "on".into(),
            ..Bmc::default()
        });
    }
    if !machine.fru.chassis_part_serial.is_empty() {
        let serial = machine.fru.chassis_part_serial.clone();
        machine
            .meta
            .labels
            .insert(label::MACHINE_CHASSIS.into(), serial);
    }
}

/// Where a machine stands once it registered.
fn enter_after_register(machine: &mut Machine, is_new_boot: bool, now: Timestamp) {
    match machine.phase {
        Phase::Installing => {
            let begun = machine.allocation.as_ref().is_some_and(|a| a.install.begun);
            if is_new_boot && begun {
                let why = "the machine restarted during the installation";
                next_attempt(machine, now, why);
            }
        }
        Phase::Held(HoldCause::Install | HoldCause::Ports) => {}
        // Its port is isolated, or a tenant's segment until its switch reports the move.
        Phase::Held(HoldCause::Bmc) if machine.segment == Segment::Isolated => {}
        Phase::Held(HoldCause::Wipe | HoldCause::Bmc)
            if machine.condition.state != Availability::Available => {}
        Phase::Waiting if !machine.dirty => {}
        Phase::Wiping => {}
        _ => {
            machine.segment = Segment::Provisioning;
            let phase = if machine.dirty {
                Phase::Wiping
            } else {
                Phase::Waiting
            };
            machine.enter(phase, now, "");
        }
    }
}

pub(crate) fn wipe_done(tx: &mut Tx<'_>, op: &WipeDone) -> Result {
    let mut machine: Machine = tx.require(&op.id)?;
    sign_of_life(tx, op.id);
    if machine.phase == Phase::Waiting && !machine.dirty {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    if machine.phase != Phase::Wiping {
        return Err(wrong_phase(&machine, "wiped"));
    }
    machine.wipes.push(WipeRecord {
        at: tx.now,
        disks: op.disks.clone(),
    });
    let surplus = machine.wipes.len().saturating_sub(WIPES_MAX);
    machine.wipes.drain(..surplus);

    match wipe_failure(&machine, op) {
        Some(reason) => {
            machine.condition = Condition {
                state: Availability::Tainted,
                description: reason.chars().take(256).collect(),
                issuer: ISSUER.into(),
            };
            machine.enter(Phase::Held(HoldCause::Wipe), tx.now, reason);
            Ok(Reply::Machine(tx.update(machine)))
        }
        None => {
            machine.clean_disks = known_serials(&machine);
            machine.dirty = false;
            machine.enter(Phase::Waiting, tx.now, "");
            machine.reason = resting_reason(&machine).to_owned();
            Ok(Reply::Machine(tx.save(machine)))
        }
    }
}

/// Why the disks are not all clean: one failed, or one was not even mentioned.
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
            .filter(|disk| !op.disks.iter().any(|wiped| wiped.name == disk.name))
            .map(|disk| format!("disk {} was not wiped", disk.name))
            .next()
    };
    failed.or_else(missing)
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

pub(crate) fn install_done(tx: &mut Tx<'_>, op: &InstallDone) -> Result {
    let mut machine: Machine = tx.require(&op.id)?;
    sign_of_life(tx, op.id);
    let phase = machine.phase;
    let Some(allocation) = machine
        .allocation
        .as_mut()
        .filter(|a| a.id == op.allocation)
    else {
        return Err(Error::new(
            ErrorCode::MachineNotAllocated,
            format!(
                "machine \"{}\" has no allocation \"{}\"",
                op.id, op.allocation
            ),
        )
        .object("machine", op.id));
    };
    if allocation.install.installed_at.is_some() {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    if phase != Phase::Installing {
        return Err(wrong_phase(&machine, "installed"));
    }
    if is_told_again(&allocation.install, op) {
        return Ok(Reply::Machine(tx.save(machine)));
    }
    let install = &mut allocation.install;
    install.error = op.error.clone().filter(|error| !error.is_empty());
    install.step.clone_from(&op.step);
    install.log_tail = tail(&op.log_tail, LOG_TAIL_MAX).to_owned();
    install.primary_disk.clone_from(&op.primary_disk);
    let Some(error) = install.error.clone() else {
        install.installed_at = Some(tx.now);
        install.console_password.clone_from(&op.console_password);
        machine.enter(Phase::BootOrder, tx.now, "");
        let machine = tx.save(machine);
        order_life(tx, &machine, BmcAction::BootDisk)?;
        return Ok(Reply::Machine(machine));
    };
    let reason = match op.step.as_str() {
        "" => error,
        step => format!("{step}: {error}"),
    };
    if op.retryable {
        next_attempt(&mut machine, tx.now, &reason);
    } else {
        let reason = format!("installation failed for good at {reason}");
        machine.enter(Phase::Held(HoldCause::Install), tx.now, reason);
    }
    Ok(Reply::Machine(tx.save(machine)))
}

/// `true` if hammer reports the failure of the attempt before once more: the answer was lost, and
/// the next attempt has not begun.
fn is_told_again(install: &Install, op: &InstallDone) -> bool {
    !install.begun
        && install.error.is_some()
        && install.error == op.error
        && install.step == op.step
        && install.log_tail == tail(&op.log_tail, LOG_TAIL_MAX)
}

/// The end of a text, cut where a character begins.
fn tail(text: &str, max: usize) -> &str {
    let start = (text.len().saturating_sub(max)..=text.len()).find(|at| text.is_char_boundary(*at));
    start.and_then(|at| text.get(at..)).unwrap_or_default()
}

/// Begins the next attempt, or holds the machine after the last.
fn next_attempt(machine: &mut Machine, now: Timestamp, why: &str) {
    let Some(allocation) = &mut machine.allocation else {
        return;
    };
    let install = &mut allocation.install;
    install.error.get_or_insert_with(|| why.to_owned());
    install.begun = false;
    if install.attempt >= INSTALL_ATTEMPTS_MAX {
        let reason = format!("installation failed {INSTALL_ATTEMPTS_MAX} times, at last: {why}");
        machine.enter(Phase::Held(HoldCause::Install), now, reason);
    } else {
        install.attempt += 1;
        machine.reason = format!("attempt {}: {why}", install.attempt);
        machine.since = now;
    }
}
