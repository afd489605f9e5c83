//! Which project may use a machine now.

use proto_errors::{Error, ErrorCode};
use proto_types::{ProjectId, Timestamp};

use crate::allocation::entity::NodeAllocation;
use crate::lease::entity::Lease;
use crate::machine::entity::{Machine, MachinePool};
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Refuses the allocation of a machine to a project that is not its user: the lessee while a lease
/// runs, else the owner. A machine of the site is every project's.
///
/// # Errors
/// `NotFound` for a project without a relation to the machine, `MachineLeased` for its owner,
/// `MachineNotLeased` for a lessee whose lease is over, `MachineReserved` if a node allocation of
/// another project holds it.
pub(crate) fn check_use(
    tables: &Tables,
    machine: &Machine,
    project: ProjectId,
    now: Timestamp,
) -> CheckResult {
    let id = machine.id;
    let lease = tables.get::<Lease>(&id);
    match machine.tenure.pool() {
        MachinePool::Of(user) if user != project => {
            if machine.tenure.relation(project).is_none() {
                // Word for word as for a machine that does not exist.
                return Err(Error::not_found("machine", id));
            }
            let message = format!("machine \"{id}\" is leased to another project");
            return Err(Error::new(ErrorCode::MachineLeased, message).object("machine", id));
        }
        MachinePool::Of(_) if lease.is_some_and(|lease| lease.is_over(now)) => {
            let message = format!("machine \"{id}\" cannot be used any more: the lease is over");
            return Err(Error::new(ErrorCode::MachineNotLeased, message).object("machine", id));
        }
        MachinePool::Of(_) | MachinePool::Shared => {}
    }
    let holder = machine.tenure.reserved_by;
    let holder = holder.and_then(|holder| tables.get::<NodeAllocation>(&holder));
    // A node allocation of an administrator names no project: the one that may use the machine does.
    let other = holder.filter(|holder| holder.owner.is_some_and(|owner| owner != project));
    let Some(other) = other else { return Ok(()) };
    let message = format!("node allocation \"{}\" holds machine \"{id}\"", other.id);
    Err(Error::new(ErrorCode::MachineReserved, message).object("machine", id))
}
