//! Checks of the terms of leases.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{LeaseId, MachineId, ProjectId, Timestamp};

use crate::lease::entity::{LEASE_MS_MAX, Lease};
use crate::machine::entity::Machine;
use crate::reply::CheckResult;
use crate::tables::{Tables, Tx};
use crate::tenancy::entity::Project;

/// The lease of a machine that runs.
///
/// # Errors
/// `MachineNotLeased` if there is none, or its end is reached; `Conflict` if the caller means another
/// one.
pub(super) fn running_lease(
    tables: &Tables,
    machine: MachineId,
    meant: Option<LeaseId>,
    now: Timestamp,
) -> Result<Lease, Error> {
    let Some(lease) = tables.get::<Lease>(&machine) else {
        return Err(not_leased(machine, "is not leased"));
    };
    if meant.is_some_and(|meant| meant != lease.id) {
        let message = format!(
            "machine \"{machine}\" has another lease by now: \"{}\"",
            lease.id
        );
        return Err(Error::new(ErrorCode::Conflict, message).object("machine", machine));
    }
    if lease.is_over(now) {
        return Err(not_leased(
            machine,
            "is not leased any more: the lease is over",
        ));
    }
    Ok(Lease::clone(lease))
}

fn not_leased(machine: MachineId, rule: &str) -> Error {
    let message = format!("machine \"{machine}\" {rule}");
    Error::new(ErrorCode::MachineNotLeased, message).object("machine", machine)
}

/// Writes a lease, and the part of it that the machine's own row has.
pub(super) fn write(tx: &mut Tx<'_>, lease: Lease) -> Result<Arc<Lease>, Error> {
    let mut machine: Machine = tx.require(&lease.machine)?;
    let is_other_lessee = machine.tenure.lessee != Some(lease.lessee);
    machine.tenure.lessee = Some(lease.lessee);
    machine.tenure.lease_expires_at = Some(lease.expires_at);
    machine.tenure.lease_warned_at = lease.warned_at;
    if is_other_lessee {
        tx.update(machine);
    } else {
        // Longer terms and warnings do not break the optimistic lock of the lessee's own changes.
        tx.save(machine);
    }
    Ok(tx.save(lease))
}

/// Refuses an end that is past or too far away.
pub(super) fn check_end(field: &str, end: Timestamp, now: Timestamp) -> CheckResult {
    if end <= now {
        return Err(Error::invalid(field, "must be in the future"));
    }
    if end > now.plus_ms(LEASE_MS_MAX) {
        return Err(Error::invalid(field, "must be within ten years"));
    }
    Ok(())
}

/// Refuses a change of hands while somebody uses the machine, or a node allocation holds it. A machine
/// that is on its way back from its last user is free in this sense: the next one gets it wiped.
pub(super) fn check_unused(machine: &Machine) -> CheckResult {
    let id = machine.id;
    let user = machine.allocation.as_ref();
    if user.is_some() && !machine.is_leaving() {
        let message = format!("machine \"{id}\" is in use");
        return Err(Error::new(ErrorCode::MachineAllocated, message).object("machine", id));
    }
    check_unreserved(machine)
}

/// Refuses a change of hands while a node allocation holds the machine.
pub(super) fn check_unreserved(machine: &Machine) -> CheckResult {
    let id = machine.id;
    let Some(allocation) = machine.tenure.reserved_by else {
        return Ok(());
    };
    let message = format!("node allocation \"{allocation}\" holds machine \"{id}\"");
    let hint = format!("end it first: metalmesh node-allocation rm {allocation}");
    let error = Error::new(ErrorCode::MachineReserved, message).object("machine", id);
    Err(error.hint(hint))
}

/// Refuses a change of the owner while a lease runs: the lessee has its terms from this owner.
pub(super) fn check_not_leased(tables: &Tables, machine: MachineId) -> CheckResult {
    let Some(lease) = tables.get::<Lease>(&machine) else {
        return Ok(());
    };
    let message = format!(
        "machine \"{machine}\" is leased to project \"{}\": its owner does not change meanwhile",
        lease.lessee
    );
    Err(Error::new(ErrorCode::MachineLeased, message).object("machine", machine))
}

/// Refuses a project that does not exist.
pub(super) fn check_project(tables: &Tables, project: ProjectId) -> CheckResult {
    tables.require::<Project>(&project).map(drop)
}
