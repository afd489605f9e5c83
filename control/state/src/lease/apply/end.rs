//! The end of a lease: the lessee loses the machine, which is released and wiped.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::allocation::entity::NodeAllocation;
use crate::fields::check_description;
use crate::lease::apply::terms::{check_unused, running_lease};
use crate::lease::command::{EndLease, LeaseEnder};
use crate::lease::entity::Lease;
use crate::lease::read::{TenureAction, check_action};
use crate::machine::apply::reclaim;
use crate::machine::entity::{Machine, TenureRelation};
use crate::machine::read::is_left_alone;
use crate::node::apply::instance::end_use;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Ends a lease before its date.
pub(crate) fn end(tx: &mut Tx<'_>, op: &EndLease) -> ApplyResult {
    check_description(&op.reason)?;
    let relation = match op.by {
        LeaseEnder::Project(project) => {
            let action = TenureAction::End;
            Some(check_action(tx.tables(), op.machine, project, action)?)
        }
        LeaseEnder::Administrator => None,
    };
    let machine: Machine = tx.require(&op.machine)?;
    running_lease(tx.tables(), op.machine, op.lease, tx.now)?;
    check_unlocked(&machine)?;
    let how = match relation {
        Some(TenureRelation::Lessee) => "handed back",
        Some(TenureRelation::Owner) => {
            // The date is the owner's word: it does not take the machine away before.
            check_unused(&machine)?;
            "withdrawn"
        }
        None => "ended",
    };
    let reason = match op.reason.as_str() {
        "" => format!("the lease was {how} by {}", tx.actor),
        text => format!("the lease was {how} by {}: {text}", tx.actor),
    };
    finish(tx, op.machine, &reason).map(Reply::Lease)
}

/// Ends the lease of a machine, and the lessee's use of it. The answer is the lease as it was.
///
/// # Errors
/// `NotFound` without a lease; those of the release.
pub(super) fn finish(tx: &mut Tx<'_>, id: MachineId, reason: &str) -> Result<Arc<Lease>, Error> {
    let ended = tx.delete::<Lease>(&id);
    let ended = ended.ok_or_else(|| Error::not_found("lease", id))?;
    let mut machine: Machine = tx.require(&id)?;
    // No node allocation outlives the lease under which it got the machine.
    if let Some(allocation) = machine.tenure.end_lease() {
        tx.delete::<NodeAllocation>(&allocation);
    }
    let is_used = machine.allocation.is_some() && !machine.is_leaving();
    let machine = tx.update(machine);
    // Also of a lessee that never used it: it may have said how it wanted to.
    end_use(tx, id);
    if is_used {
        reclaim::end_tenancy(tx, Machine::clone(&machine), reason, "the lease ended")?;
    }
    Ok(ended)
}

/// Refuses the end of a lease of a locked machine, which control leaves alone.
fn check_unlocked(machine: &Machine) -> CheckResult {
    if !is_left_alone(machine) {
        return Ok(());
    }
    let (id, why) = (machine.id, &machine.condition.description);
    let message = format!("machine \"{id}\" is locked: {why}");
    Err(Error::new(ErrorCode::MachineLocked, message).object("machine", id))
}
