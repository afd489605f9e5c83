//! Another lessee: asked for by the lessee, with the consent of the owner.

use proto_errors::{Error, ErrorCode};

use crate::lease::apply::terms::{check_project, check_unused, running_lease, write};
use crate::lease::command::{DecideLeaseTransfer, RequestLeaseTransfer};
use crate::lease::read::{TenureAction, check_action};
use crate::machine::entity::Machine;
use crate::node::apply::instance::end_use;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Asks for another lessee, or takes the request back.
pub(crate) fn request(tx: &mut Tx<'_>, op: &RequestLeaseTransfer) -> ApplyResult {
    let action = TenureAction::RequestTransfer;
    check_action(tx.tables(), op.machine, op.project, action)?;
    let mut lease = running_lease(tx.tables(), op.machine, op.lease, tx.now)?;
    if let Some(to) = op.to {
        if to == lease.lessee {
            return Err(Error::invalid("to", "must be another project"));
        }
        if to == lease.owner {
            let rule = "must not be the owner: hand the machine back instead";
            return Err(Error::invalid("to", rule));
        }
        check_project(tx.tables(), to)?;
    }
    if lease.transfer_to != op.to {
        lease.transfer_to = op.to;
        lease.updated_at = tx.now;
    }
    Ok(Reply::Lease(tx.save(lease)))
}

/// Consents to the lessee that is asked for, or refuses it.
pub(crate) fn decide(tx: &mut Tx<'_>, op: &DecideLeaseTransfer) -> ApplyResult {
    let action = TenureAction::DecideTransfer;
    check_action(tx.tables(), op.machine, op.project, action)?;
    let mut lease = running_lease(tx.tables(), op.machine, op.lease, tx.now)?;
    if lease.transfer_to != Some(op.to) {
        let message = format!(
            "the lessee of machine \"{}\" does not ask for project \"{}\"",
            op.machine, op.to
        );
        return Err(Error::new(ErrorCode::Conflict, message).object("machine", op.machine));
    }
    lease.transfer_to = None;
    lease.updated_at = tx.now;
    if op.consent {
        // The next lessee gets a wiped machine, and none on which the last one's system runs.
        check_unused(tx.tables().require::<Machine>(&op.machine)?)?;
        check_project(tx.tables(), op.to)?;
        lease.lessee = op.to;
        end_use(tx, op.machine);
    }
    write(tx, lease).map(Reply::Lease)
}
