//! The grant of a lease, and longer terms.

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::fields::check_description;
use crate::lease::apply::terms::{
    check_end, check_not_leased, check_project, check_unused, running_lease, write,
};
use crate::lease::command::{ExtendLease, ExtensionLimit, GrantLease};
use crate::lease::entity::{LEASE_WARNING_MS, Lease};
use crate::lease::read::{TenureAction, check_action};
use crate::machine::entity::{Machine, TenureRelation};
use crate::node::apply::instance::end_use;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Leases a machine to a project, by its owner.
pub(crate) fn grant(tx: &mut Tx<'_>, op: &GrantLease) -> ApplyResult {
    check_action(tx.tables(), op.machine, op.project, TenureAction::Grant)?;
    check_description(&op.comment)?;
    if op.lessee == op.project {
        let rule = "must be another project: the owner needs no lease";
        return Err(Error::invalid("lessee", rule));
    }
    check_project(tx.tables(), op.lessee)?;
    check_end("expires_at", op.expires_at, tx.now)?;
    if let Some(limit) = op.extendable_until {
        check_limit(limit, op.expires_at, tx.now)?;
    }
    check_not_leased(tx.tables(), op.machine)?;
    check_unused(tx.tables().require::<Machine>(&op.machine)?)?;
    end_use(tx, op.machine);
    let wanted = op.warning_ms.unwrap_or(LEASE_WARNING_MS);
    let half = op.expires_at.since_ms(tx.now) / 2;
    let lease = Lease {
        machine: op.machine,
        id: op.id,
        owner: op.project,
        lessee: op.lessee,
        granted_at: tx.now,
        updated_at: tx.now,
        expires_at: op.expires_at,
        extendable_until: op.extendable_until,
        warning_ms: wanted.min(half),
        warned_at: None,
        transfer_to: None,
        comment: op.comment.clone(),
    };
    write(tx, lease).map(Reply::Lease)
}

/// Makes a lease longer, or changes how far its lessee may do so.
pub(crate) fn extend(tx: &mut Tx<'_>, op: &ExtendLease) -> ApplyResult {
    let relation = check_action(tx.tables(), op.machine, op.project, TenureAction::Extend)?;
    if op.limit != ExtensionLimit::Keep {
        check_action(tx.tables(), op.machine, op.project, TenureAction::SetLimit)?;
    }
    let before = running_lease(tx.tables(), op.machine, op.lease, tx.now)?;
    let mut lease = before.clone();
    if let Some(end) = op.expires_at {
        check_end("expires_at", end, tx.now)?;
        if end < lease.expires_at {
            let rule = "must not be before the present end: a lease is only made longer";
            return Err(Error::invalid("expires_at", rule));
        }
        if relation == TenureRelation::Lessee {
            check_within_limit(&lease, end)?;
        }
        lease.expires_at = end;
    }
    match op.limit {
        ExtensionLimit::Keep => {}
        ExtensionLimit::Clear => lease.extendable_until = None,
        ExtensionLimit::Until(limit) => {
            check_limit(limit, lease.expires_at, tx.now)?;
            lease.extendable_until = Some(limit);
        }
    }
    if lease == before {
        return write(tx, lease).map(Reply::Lease);
    }
    // The end is far away again: it is warned of anew.
    if tx.now < lease.warning_at() {
        lease.warned_at = None;
    }
    lease.updated_at = tx.now;
    write(tx, lease).map(Reply::Lease)
}

/// Refuses a limit that allows nothing, or too much.
fn check_limit(limit: Timestamp, end: Timestamp, now: Timestamp) -> CheckResult {
    check_end("extendable_until", limit, now)?;
    if limit < end {
        let rule = "must not be before the end of the lease";
        return Err(Error::invalid("extendable_until", rule));
    }
    Ok(())
}

/// Refuses an end beyond the owner's limit. A lease without a limit is extended by its owner alone.
fn check_within_limit(lease: &Lease, end: Timestamp) -> CheckResult {
    let machine = lease.machine;
    let rule = match lease.extendable_until {
        Some(limit) if end <= limit => return Ok(()),
        Some(_) => "its owner has set a limit, which is before that",
        None => "only its owner may extend the lease",
    };
    let message = format!("the lease of machine \"{machine}\" cannot be extended so: {rule}");
    Err(Error::new(ErrorCode::LeaseLimited, message).object("machine", machine))
}
