//! From the first registration to the running system.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, Timestamp};

use super::orders::order_life;
use super::{events, links};
use crate::command::{InstallDone, MachineSeen, RegisterMachine, WipeDone};
use crate::entities::{
    Availability, BlockDevice, Bmc, BmcAction, Condition, EventLog, HoldCause, Liveliness, Machine,
    Phase, Segment, WIPES_MAX, WipeRecord, label,
};
use crate::hardware::match_size;
use crate::reply::Reply;
use crate::tables::Tx;

/// How often an installation is begun.
pub const INSTALL_ATTEMPTS_MAX: u32 = 3;
/// Who taints machines that cannot be wiped.
pub(super) const ISSUER: &str = "metalmesh";
/// How much of hammer's log is kept, bytes.
const LOG_TAIL_MAX: usize = 16 * 1024;

type Result = std::result::Result<Reply, Error>;

/// Anything heard from a machine that is not an event.
pub(super) fn sign_of_life(tx: &mut Tx<'_>, machine: MachineId) {
    let log = tx.get::<EventLog>(&machine).map(|log| EventLog::clone(log));
    let mut log = log.unwrap_or_else(|| EventLog::new(machine));
    log.last_event_time = tx.now;
    log.liveliness = Liveliness::Alive;
    tx.save(log);
}

/// Hammer says goodbye: from now on the port is the tenant's.
pub(super) fn leaves_hammer(machine: &mut Machine, now: Timestamp) {
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

/// What a disk is known by between boots: its serial number, else its name and size.
fn disk_identity(disk: &BlockDevice) -> String {
    if disk.serial.is_empty() {
        format!("{}:{}", disk.name, disk.size)
    } else {
        disk.serial.clone()
    }
}

pub(super) fn register(tx: &mut Tx<'_>, op: &RegisterMachine) -> Result {
    if let Some(partition) = &op.seen_in {
        let seen = MachineSeen {
            id: op.id,
            partition: partition.clone(),
            mac: None,
            seen_at: tx.now,
            to_disk: false,
        };
        events::seen(tx, &seen)?;
    }
    let mut machine: Machine = tx.require(&op.id)?;
    let is_new_boot = machine.boot_id != op.boot_id;
    take_inventory(&mut machine, op);
    links::take(tx, &mut machine);
    let has_unknown_disk = machine
        .hardware
        .disks
        .iter()
        .any(|disk| disk.is_fixed() && !machine.clean_disks.contains(&disk_identity(disk)));
    if machine.allocation.is_none() {
        machine.size = match_size(tx.tables(), &machine.hardware);
        machine.dirty |= has_unknown_disk;
    }
    sign_of_life(tx, op.id);
    let misbooted = enter_after_register(&mut machine, is_new_boot, tx.now);
    if machine.size.is_none() && machine.phase == Phase::Waiting {
        machine.reason = "no size matches the hardware, or more than one does".into();
    }
    let machine = tx.save(machine);
    if misbooted && is_new_boot {
        // The installed system did not come up from disk: say so to the BMC once more.
        order_life(tx, &machine, BmcAction::BootDisk)?;
    }
    Ok(Reply::Machine(machine))
}

fn take_inventory(machine: &mut Machine, op: &RegisterMachine) {
    machine.hammer_version.clone_from(&op.hammer_version);
    machine.boot_id.clone_from(&op.boot_id);
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

/// Where a machine stands once it registered. True when it should have booted from disk.
fn enter_after_register(machine: &mut Machine, is_new_boot: bool, now: Timestamp) -> bool {
    match machine.phase {
        Phase::Installing => {
            let begun = machine.allocation.as_ref().is_some_and(|a| a.install.begun);
            if is_new_boot && begun {
                next_attempt(
                    machine,
                    now,
                    "the machine restarted during the installation",
                );
            }
            false
        }
        Phase::BootOrder | Phase::Rebooting | Phase::Running => {
            if is_new_boot && machine.phase != Phase::Running {
                machine.reason = "hammer booted although the machine is installed".into();
            }
            true
        }
        // The old system or hammer of before the power-off is still there.
        Phase::ReclaimPowerOff | Phase::ReclaimPorts => false,
        Phase::Held(HoldCause::Install) => false,
        Phase::Held(HoldCause::Wipe | HoldCause::Bmc)
            if machine.condition.state != Availability::Available =>
        {
            false
        }
        Phase::Waiting if !machine.dirty => false,
        Phase::Wiping => false,
        _ => {
            machine.segment = Segment::Provisioning;
            let phase = if machine.dirty {
                Phase::Wiping
            } else {
                Phase::Waiting
            };
            machine.enter(phase, now, "");
            false
        }
    }
}

pub(super) fn wipe_done(tx: &mut Tx<'_>, op: &WipeDone) -> Result {
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
            let fixed = machine.hardware.disks.iter().filter(|disk| disk.is_fixed());
            machine.clean_disks = fixed.map(disk_identity).collect();
            machine.dirty = false;
            let reason = match machine.size {
                Some(_) => "",
                None => "no size matches the hardware, or more than one does",
            };
            machine.enter(Phase::Waiting, tx.now, reason);
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

pub(super) fn wrong_phase(machine: &Machine, verb: &str) -> Error {
    Error::new(
        ErrorCode::WrongPhase,
        format!(
            "machine \"{}\" is {}: it cannot be {verb} now",
            machine.id, machine.phase
        ),
    )
    .object("machine", machine.id)
}

pub(super) fn install_done(tx: &mut Tx<'_>, op: &InstallDone) -> Result {
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
