//! The owner of a machine.

use proto_errors::{Error, ErrorCode};
use proto_types::ProjectId;

use crate::lease::apply::terms::{check_not_leased, check_project, check_unreserved, check_unused};
use crate::lease::command::{SetMachineOwner, TransferMachine};
use crate::lease::read::{TenureAction, check_action};
use crate::machine::entity::Machine;
use crate::node::apply::instance::end_use;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Sets or clears the owner, by an administrator.
pub(crate) fn set_owner(tx: &mut Tx<'_>, op: &SetMachineOwner) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.machine)?;
    // An administrator's word confirms that of a project, or is another one.
    machine.unconfirmed = false;
    if machine.tenure.owner == op.owner {
        return Ok(Reply::Machine(tx.update(machine)));
    }
    check_not_leased(tx.tables(), op.machine)?;
    check_unreserved(&machine)?;
    if let Some(owner) = op.owner {
        check_no_host(&machine)?;
        check_project(tx.tables(), owner)?;
        check_user(&machine, owner)?;
    }
    machine.tenure.owner = op.owner;
    let is_used = machine.allocation.is_some() && !machine.is_leaving();
    if !is_used {
        end_use(tx, op.machine);
    }
    Ok(Reply::Machine(tx.update(machine)))
}

/// Gives the machine to another owner, by its owner.
pub(crate) fn transfer_machine(tx: &mut Tx<'_>, op: &TransferMachine) -> ApplyResult {
    let action = TenureAction::TransferMachine;
    check_action(tx.tables(), op.machine, op.project, action)?;
    let mut machine: Machine = tx.require(&op.machine)?;
    if op.to == op.project {
        return Err(Error::invalid("to", "must be another project"));
    }
    check_not_leased(tx.tables(), op.machine)?;
    check_unused(&machine)?;
    check_project(tx.tables(), op.to)?;
    machine.tenure.owner = Some(op.to);
    end_use(tx, op.machine);
    Ok(Reply::Machine(tx.update(machine)))
}

/// Refuses an owner of a host: a pool offers it to the projects that its policies admit.
fn check_no_host(machine: &Machine) -> CheckResult {
    let Some(pool) = &machine.pool else {
        return Ok(());
    };
    let id = machine.id;
    let message =
        format!("machine \"{id}\" is a host of pool \"{pool}\", and such a machine has no owner");
    Err(Error::new(ErrorCode::HostOfPool, message).object("machine", id))
}

/// Refuses an owner while another project uses the machine: the machine would be taken from under it.
fn check_user(machine: &Machine, owner: ProjectId) -> CheckResult {
    let user = machine.allocation.as_ref().map(|used| used.project);
    let Some(user) = user.filter(|user| *user != owner && !machine.is_leaving()) else {
        return Ok(());
    };
    let id = machine.id;
    let message = format!("machine \"{id}\" is in use by project \"{user}\"");
    Err(Error::new(ErrorCode::MachineAllocated, message).object("machine", id))
}
