//! The wipe of a free machine that a client asks for.

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
    let mut machine: Machine = tx.require(&op.machine)?;
    check_free(&machine)?;
    // Since the backup the machine may have been given to a tenant.
    if restored(tx.tables()).is_some() {
        return Err(not_reconciled().object("machine", op.machine));
    }
    match machine.phase {
        Phase::New | Phase::Waiting => {
            machine.dirty = true;
            machine.clean_disks.clear();
            tx.save(machine);
            nudge(tx, op.machine, "wiped again")?;
        }
        // An operator has to look first.
        Phase::Held(_) => return Err(wrong_phase(&machine, "wiped")),
        // It is on its way to a wipe already.
        _ => {}
    }
    let machine = tx.tables().require::<Machine>(&op.machine)?;
    Ok(Reply::Machine(machine.clone()))
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
