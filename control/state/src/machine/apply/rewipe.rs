//! The further wipe of a free machine.

use proto_errors::{Error, ErrorCode};

use crate::cluster::read::{not_reconciled, restored};
use crate::machine::apply::lifecycle::wrong_phase;
use crate::machine::apply::reclaim::nudge;
use crate::machine::entity::{Machine, Phase};
use crate::machine::read::is_left_alone;
use crate::node::command::WipeNode;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Has a free machine wiped again: it is told to come up anew, and is wiped because it registers dirty.
pub(crate) fn wipe_node(tx: &mut Tx<'_>, op: &WipeNode) -> ApplyResult {
    let machine: Machine = tx.require(&op.machine)?;
    check_free(&machine)?;
    // Since the backup the machine may have been given to a tenant.
    if restored(tx.tables()).is_some() {
        return Err(not_reconciled().object("machine", op.machine));
    }
    match machine.phase {
        Phase::New | Phase::Waiting => {
            wipe_again(tx, machine)?;
        }
        // An operator has to look first.
        Phase::Held(_) => return Err(wrong_phase(&machine, "wiped")),
        // It is on its way to a wipe already.
        _ => {}
    }
    let machine = tx.tables().require::<Machine>(&op.machine)?;
    Ok(Reply::Machine(machine.clone()))
}

/// Has a machine that hammer runs on wiped again, by a full wipe: it is told to come up anew, and is wiped
/// because it registers dirty.
pub(crate) fn wipe_again(tx: &mut Tx<'_>, mut machine: Machine) -> CheckResult {
    let id = machine.id;
    machine.dirty = true;
    machine.clean_disks.clear();
    machine.wipe_level = None;
    tx.save(machine);
    nudge(tx, id, "wiped again")
}

/// Marks the disks of a machine for a full wipe and begins it if that can be done now. A machine that is
/// locked, whose BMC is unknown, or that waits for the operator of a restored cluster is wiped at its
/// next boot: until then it is on offer to nobody.
pub(crate) fn wipe_or_wait(tx: &mut Tx<'_>, mut machine: Machine) {
    machine.dirty = true;
    machine.clean_disks.clear();
    machine.wipe_level = None;
    let id = machine.id;
    let machine = tx.save(machine);
    let may_begin = machine.phase == Phase::Waiting
        && !is_left_alone(&machine)
        && restored(tx.tables()).is_none();
    if !may_begin {
        return;
    }
    if let Err(error) = tx.part(|tx| nudge(tx, id, "wiped again")) {
        tx.save(Machine {
            reason: format!("it is wiped at its next boot: {}", error.message),
            ..Machine::clone(&machine)
        });
    }
}

/// Refuses a machine that somebody uses, holds or claims, or that control leaves alone.
fn check_free(machine: &Machine) -> CheckResult {
    let id = machine.id;
    let refuse = |code, why: &str| {
        let message = format!("machine \"{id}\" {why}");
        Err(Error::new(code, message).object("machine", id))
    };
    if machine.allocation.is_some() {
        return refuse(ErrorCode::MachineAllocated, "is allocated");
    }
    if machine.tenure.reserved_by.is_some() {
        return refuse(ErrorCode::MachineReserved, "is held by a node allocation");
    }
    if machine.pool.is_some() {
        let why = "is a host of a pool";
        let wiped = format!("an administrator has it wiped: metalmesh pool host clean {id}");
        return refuse(ErrorCode::HostOfPool, why).map_err(|error: Error| error.hint(wiped));
    }
    if is_left_alone(machine) {
        let why = format!("is locked: {}", machine.condition.description);
        return refuse(ErrorCode::MachineLocked, &why);
    }
    Ok(())
}
