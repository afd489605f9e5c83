//! The creation of a node allocation: one command that chooses the machine and holds it.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, ResourceClass};

use crate::allocation::apply::names::{check_extra, check_name};
use crate::allocation::command::CreateNodeAllocation;
use crate::allocation::entity::{NODE_ALLOCATIONS_MAX, NodeAllocation, NodeAllocationState};
use crate::allocation::read::chosen_machine;
use crate::cluster::read::{not_reconciled, restored};
use crate::machine::entity::{Machine, MachinePool, TRAITS_MAX};
use crate::meta::Meta;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::entity::Project;

/// Creates a node allocation. One that finds no machine is kept in state `Error`, with the reason.
pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateNodeAllocation) -> ApplyResult {
    check_request(tx.tables(), op)?;
    // A machine that is free in the backup may be somebody's since.
    if restored(tx.tables()).is_some() {
        return Err(not_reconciled());
    }
    let (mut allocation, chosen) = match (op.backfill, &op.resource_class) {
        (Some(id), _) => {
            let (machine, class) = used_machine(tx.tables(), op, id)?;
            (new_allocation(op, class), Ok(machine))
        }
        (None, Some(class)) => {
            let wanted = new_allocation(op, class.clone());
            let chosen = chosen_machine(tx.tables(), &wanted, op.seed).cloned();
            (wanted, chosen)
        }
        (None, None) => return Err(Error::invalid("resource_class", "is missing")),
    };
    match chosen {
        Ok(mut machine) => {
            allocation.state = NodeAllocationState::Active;
            allocation.machine = Some(machine.id);
            machine.tenure.reserved_by = Some(op.id);
            tx.update(machine);
        }
        Err(reason) => allocation.last_error = reason,
    }
    tx.create(allocation).map(Reply::NodeAllocation)
}

fn check_request(tables: &Tables, op: &CreateNodeAllocation) -> CheckResult {
    if let Some(owner) = op.owner {
        tables.require::<Project>(&owner)?;
    }
    let pool = pool(op);
    if let Some(name) = &op.name {
        check_name(tables, pool, name)?;
    }
    check_extra(&op.extra)?;
    if op.traits.len() > TRAITS_MAX {
        let rule = format!("must be at most {TRAITS_MAX}");
        return Err(Error::invalid("traits", rule));
    }
    let own = tables.index().pool_allocations.get(&pool);
    if own.map_or(0, BTreeSet::len) >= NODE_ALLOCATIONS_MAX {
        let message = format!("there are {NODE_ALLOCATIONS_MAX} node allocations already");
        let hint = "delete those that failed or are over: metalmesh node-allocation rm ID";
        return Err(Error::new(ErrorCode::TooMany, message).hint(hint));
    }
    if op.backfill.is_some() && !op.candidates.is_empty() {
        let rule = "exclude a machine that is in use";
        return Err(Error::invalid("candidates", rule));
    }
    let mut candidates = op.candidates.iter();
    candidates.try_for_each(|id| check_seen(tables, op, *id))
}

fn pool(op: &CreateNodeAllocation) -> MachinePool {
    op.owner.map_or(MachinePool::Shared, MachinePool::Of)
}

/// Refuses a machine that the owner of the node allocation may not see: another project's is not told
/// from one that does not exist.
fn check_seen(tables: &Tables, op: &CreateNodeAllocation, id: MachineId) -> CheckResult {
    let machine = tables.require::<Machine>(&id)?;
    match op.owner {
        Some(owner) if machine.tenure.relation(owner).is_none() => {
            Err(Error::not_found("machine", id))
        }
        _ => Ok(()),
    }
}

/// The machine that is in use already, if the node allocation may be made for it, and its class.
fn used_machine(
    tables: &Tables,
    op: &CreateNodeAllocation,
    id: MachineId,
) -> Result<(Machine, ResourceClass), Error> {
    let machine = tables.require::<Machine>(&id)?;
    // The machine under a claim is not the project's to see: it has the claim.
    let is_own = op.owner.is_none_or(|owner| machine.is_held_by(owner));
    if !is_own {
        check_seen(tables, op, id)?;
    }
    let refuse = |code, rule: &str| {
        let message = format!("machine \"{id}\" {rule}");
        Err(Error::new(code, message).object("machine", id))
    };
    if machine.pool.is_some() {
        return refuse(ErrorCode::HostOfPool, "is a host of a pool");
    }
    if machine.allocation.is_none() || machine.is_leaving() {
        return refuse(ErrorCode::MachineNotAllocated, "is not in use");
    }
    if !is_own {
        return refuse(ErrorCode::MachineAllocated, "is in use by another project");
    }
    if machine.tenure.reserved_by.is_some() {
        return refuse(ErrorCode::MachineReserved, "has a node allocation already");
    }
    let Some(class) = &machine.capability.resource_class else {
        return refuse(ErrorCode::MachineNotReady, "has no resource class");
    };
    let is_other = |wanted: &ResourceClass| wanted.canonical() != class.canonical();
    if op.resource_class.as_ref().is_some_and(is_other) {
        return refuse(ErrorCode::MachineNotReady, "is of another resource class");
    }
    if !op.traits.is_subset(&machine.capability.traits) {
        return refuse(ErrorCode::MachineNotReady, "has not all of the traits");
    }
    let written = op.resource_class.as_ref().unwrap_or(class);
    Ok((Machine::clone(machine), written.clone()))
}

/// The node allocation before it holds a machine.
fn new_allocation(op: &CreateNodeAllocation, class: ResourceClass) -> NodeAllocation {
    NodeAllocation {
        id: op.id,
        meta: Meta::default(),
        name: op.name.clone(),
        owner: op.owner,
        resource_class: class,
        traits: op.traits.clone(),
        candidates: op.candidates.clone(),
        state: NodeAllocationState::Error,
        machine: None,
        last_error: String::new(),
        extra: op.extra.clone(),
    }
}
