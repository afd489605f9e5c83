//! The end of an installation, successful or not.

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::machine::apply::lifecycle::{sign_of_life, wrong_phase};
use crate::machine::apply::orders::order_life;
use crate::machine::command::InstallDone;
use crate::machine::entity::{BmcAction, Install, Machine, Phase};
use crate::machine::phase::{PhaseEvent, enter};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Most attempts of an installation; after the last failure the machine is held.
pub const INSTALL_ATTEMPTS_MAX: u32 = 3;

/// Longest tail of hammer's log that is kept, bytes; the beginning is cut off.
const LOG_TAIL_MAX: usize = 16 * 1024;

/// Takes hammer's report on the end of an installation.
pub(crate) fn install_done(tx: &mut Tx<'_>, op: &InstallDone) -> ApplyResult {
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
    // A repeated report of success: entered again, the phase would order the boot device again.
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
        enter(&mut machine, PhaseEvent::Installed, tx.now, "");
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
        enter(&mut machine, PhaseEvent::InstallFailed, tx.now, reason);
    }
    Ok(Reply::Machine(tx.save(machine)))
}

/// `true` if hammer repeats the failure of the last attempt: the answer was lost, and the next
/// attempt has not begun. Counted again, one failure would use up two attempts.
fn is_told_again(install: &Install, op: &InstallDone) -> bool {
    !install.begun
        && install.error.is_some()
        && install.error == op.error
        && install.step == op.step
        && install.log_tail == tail(&op.log_tail, LOG_TAIL_MAX)
}

/// The end of a text, at most `max` bytes, cut at the start of a character.
fn tail(text: &str, max: usize) -> &str {
    let start = (text.len().saturating_sub(max)..=text.len()).find(|at| text.is_char_boundary(*at));
    start.and_then(|at| text.get(at..)).unwrap_or_default()
}

/// Begins the next attempt, or holds the machine after the last.
pub(crate) fn next_attempt(machine: &mut Machine, now: Timestamp, why: &str) {
    let Some(allocation) = &mut machine.allocation else {
        return;
    };
    let install = &mut allocation.install;
    install.error.get_or_insert_with(|| why.to_owned());
    install.begun = false;
    if install.attempt >= INSTALL_ATTEMPTS_MAX {
        let reason = format!("installation failed {INSTALL_ATTEMPTS_MAX} times, at last: {why}");
        enter(machine, PhaseEvent::InstallFailed, now, reason);
    } else {
        install.attempt += 1;
        machine.reason = format!("attempt {}: {why}", install.attempt);
        // The deadline of silence restarts: the attempt has the whole time.
        machine.since = now;
    }
}
