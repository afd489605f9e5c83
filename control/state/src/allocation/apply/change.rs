//! Changes and the end of a node allocation.

use proto_errors::{Error, ErrorCode};
use proto_types::{NodeAllocationId, ProjectId};

use crate::allocation::apply::names::{check_extra, check_name};
use crate::allocation::command::{DeleteNodeAllocation, UpdateNodeAllocation};
use crate::allocation::entity::NodeAllocation;
use crate::machine::entity::Machine;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// The node allocation, if it is the project's; an administrator, who names none, has all. That of an
/// administrator is no project's.
///
/// # Errors
/// `NotFound` for another project's, as for one that does not exist.
fn own(
    tx: &Tx<'_>,
    id: NodeAllocationId,
    project: Option<ProjectId>,
) -> Result<NodeAllocation, Error> {
    let found: NodeAllocation = tx.require(&id)?;
    match project {
        Some(project) if found.owner != Some(project) => {
            Err(Error::not_found("node-allocation", id))
        }
        _ => Ok(found),
    }
}

/// Changes name and additional fields.
pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateNodeAllocation) -> ApplyResult {
    let mut allocation = own(tx, op.id, op.project)?;
    let key = op.id.to_string();
    op.lock.check("node-allocation", &key, &allocation.meta)?;
    if let Some(name) = &op.name {
        let name = Some(name).filter(|name| !name.is_empty());
        if name != allocation.name.as_ref() {
            if let Some(name) = name {
                check_name(tx.tables(), allocation.pool(), name)?;
            }
            allocation.name = name.cloned();
        }
    }
    if let Some(extra) = &op.extra {
        check_extra(extra)?;
        allocation.extra.clone_from(extra);
    }
    Ok(Reply::NodeAllocation(tx.update(allocation)))
}

/// Ends a node allocation, so that its machine is free for others. One whose machine is in use ends with
/// that use.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteNodeAllocation) -> ApplyResult {
    let allocation = own(tx, op.id, op.project)?;
    let machine = allocation.machine.and_then(|id| tx.get::<Machine>(&id));
    if let Some(mut machine) = machine.map(|machine| Machine::clone(machine)) {
        if machine.allocation.is_some() && !machine.is_leaving() {
            let id = machine.id;
            let message = format!("node allocation \"{}\" has machine \"{id}\" in use", op.id);
            let hint = format!("free the machine, which ends it: metalmesh machine free {id}");
            let error = Error::new(ErrorCode::StillInUse, message);
            return Err(error.object("node-allocation", op.id).hint(hint));
        }
        machine.tenure.reserved_by = None;
        tx.update(machine);
    }
    let ended = tx.delete::<NodeAllocation>(&op.id);
    ended
        .map(Reply::NodeAllocation)
        .ok_or_else(|| Error::not_found("node-allocation", op.id))
}
