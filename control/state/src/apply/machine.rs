//! What users and admins do to machines, beside allocating and freeing.

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use super::tenancy::check_description;
use super::{allocate, boots, links, orders, reclaim};
use crate::command::{DeleteMachine, SetMachineState, UpdateMachine};
use crate::entities::{
    Availability, BmcOrder, Condition, EventLog, HoldCause, Machine, Phase, Segment,
};
use crate::reply::Reply;
use crate::tables::Tx;

type Result = std::result::Result<Reply, Error>;

pub(super) fn update(tx: &mut Tx<'_>, op: &UpdateMachine) -> Result {
    let mut machine: Machine = tx.require(&op.id)?;
    let meta = machine.meta.clone();
    let allocation = machine
        .allocation
        .as_mut()
        .filter(|a| a.project == op.project);
    let allocation = allocation.ok_or_else(|| Error::not_found("machine", op.id))?;
    op.lock.check("machine", &op.id.to_string(), &meta)?;
    if let Some(description) = &op.description {
        check_description(description)?;
        allocation.description.clone_from(description);
    }
    if let Some(labels) = &op.labels {
        labels.apply(&mut allocation.labels)?;
    }
    if let Some(keys) = &op.ssh_public_keys {
        allocate::check_keys(keys)?;
        allocation.ssh_public_keys.clone_from(keys);
    }
    Ok(Reply::Machine(tx.update(machine)))
}

pub(super) fn set_state(tx: &mut Tx<'_>, op: &SetMachineState) -> Result {
    check_description(&op.description)?;
    let mut machine: Machine = tx.require(&op.id)?;
    machine.condition = match op.state {
        Availability::Available => Condition::default(),
        state => Condition {
            state,
            description: op.description.clone(),
            issuer: tx.actor.to_owned(),
        },
    };
    let mut restarts = false;
    if op.state == Availability::Available {
        match machine.phase {
            Phase::Held(HoldCause::Wipe) => machine.enter(Phase::Wiping, tx.now, "wiped again"),
            Phase::Held(HoldCause::Bmc | HoldCause::Ports) => {
                let reason = format!("reclaimed again by {}", tx.actor);
                reclaim::restart(tx, &mut machine, &reason);
                restarts = true;
            }
            _ => {}
        }
    }
    let mut machine = tx.update(machine);
    // A locked machine's word counts no more, that of others does.
    let concerned = links::concerned(tx.tables(), &machine);
    links::take_again(tx, concerned);
    if restarts {
        reclaim::power_off(tx, op.id)?;
        machine = tx.save(tx.require(&op.id)?);
    }
    Ok(Reply::Machine(machine))
}

pub(super) fn delete(tx: &mut Tx<'_>, op: &DeleteMachine) -> Result {
    let machine = tx.tables().require::<Machine>(&op.id)?.clone();
    if machine.allocation.is_some() {
        return Err(Error::new(
            ErrorCode::MachineAllocated,
            format!("machine \"{}\" is allocated", op.id),
        )
        .object("machine", op.id));
    }
    if machine.condition.state == Availability::Locked {
        return Err(Error::new(
            ErrorCode::MachineLocked,
            format!("machine \"{}\" is locked", op.id),
        )
        .object("machine", op.id));
    }
    if machine.segment == Segment::Isolated && reclaim::may_be_connected(tx.tables(), &machine) {
        return Err(isolated(&machine));
    }
    let concerned = links::concerned(tx.tables(), &machine);
    forget(tx, op.id);
    links::take_again(tx, concerned);
    Ok(Reply::Machine(machine))
}

/// Without its record the port of an isolated machine would go back to the provisioning segment.
fn isolated(machine: &Machine) -> Error {
    let id = machine.id;
    let message = format!(
        "machine \"{id}\" is isolated: its power could not be cut, and nobody knows what runs on it"
    );
    let hint = format!(
        "reclaim it: metalmesh machine set-state available {id}; or unplug it, and delete it when \
         its switches report no carrier"
    );
    Error::new(ErrorCode::WrongPhase, message)
        .object("machine", id)
        .hint(hint)
}

/// Deletes a machine that nobody has, with its orders and events.
pub(super) fn forget(tx: &mut Tx<'_>, id: MachineId) {
    orders::cancel_open(tx, id);
    boots::end(tx, id, "the machine was deleted");
    let of_machine: Vec<_> = crate::life::machine_orders(tx.tables(), id)
        .map(|order| order.id)
        .collect();
    for order in of_machine {
        tx.delete::<BmcOrder>(&order);
    }
    tx.delete::<EventLog>(&id);
    tx.delete::<Machine>(&id);
}
