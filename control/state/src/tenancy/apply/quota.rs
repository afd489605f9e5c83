//! Quotas: checked in the command that adds holdings, by counting before and after.

use proto_errors::{Error, ErrorCode};
use proto_types::ProjectId;

use crate::holdings::{Counts, counts, quotas};
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::apply::budget::{self, Bounded};
use crate::tenancy::command::{RemoveQuota, SetQuota};
use crate::tenancy::entity::{Limits, Project, Quota, QuotaSubject, Tenant};

pub(crate) fn set(tx: &mut Tx<'_>, op: &SetQuota) -> ApplyResult {
    match &op.subject {
        QuotaSubject::Tenant(login) => drop(tx.tables().require::<Tenant>(login)?),
        QuotaSubject::Project(id) => drop(tx.tables().require::<Project>(id)?),
    }
    if op.limits == Limits::default() {
        let rule = "must bound something; to take all bounds away, remove the quota";
        return Err(Error::invalid("limits", rule));
    }
    references::check_sizes(tx.tables(), op.limits.machines_of_size.keys())?;
    let quota = Quota {
        subject: op.subject.clone(),
        limits: op.limits.clone(),
        updated_at: tx.now,
    };
    Ok(Reply::Quota(tx.save(quota)))
}

pub(crate) fn remove(tx: &mut Tx<'_>, op: &RemoveQuota) -> ApplyResult {
    let old = tx.delete::<Quota>(&op.subject);
    old.map(Reply::Quota)
        .ok_or_else(|| Error::not_found("quota", &op.subject))
}

/// Applies a change that adds holdings to a project, and checks its quotas and budgets.
///
/// # Errors
/// Those of the change, `QuotaExceeded`, and `TooMany`. The transaction must then be aborted: the
/// change is in the tables.
pub(crate) fn within(
    tx: &mut Tx<'_>,
    project: ProjectId,
    change: impl FnOnce(&mut Tx<'_>) -> ApplyResult,
) -> ApplyResult {
    let before: Vec<_> = quotas(tx.tables(), project)
        .into_iter()
        .map(|quota| (counts(tx.tables(), &quota), quota))
        .collect();
    // The change is applied first and counted after it: only it knows how many addresses and
    // networks it creates. A refusal rolls it back with the transaction.
    let reply = change(tx)?;
    let mut bounded = Bounded::default();
    for (before, quota) in before {
        let after = counts(tx.tables(), &quota);
        check(&quota, &before, &after)?;
        bounded.ips |= quota.limits.ips.is_some();
        bounded.networks |= quota.limits.networks.is_some();
    }
    budget::check_project(tx, project, bounded)?;
    Ok(reply)
}

/// `true` if a quota bounds the networks of the project.
pub(crate) fn bounds_networks(tables: &Tables, project: ProjectId) -> bool {
    let quotas = quotas(tables, project);
    quotas.iter().any(|quota| quota.limits.networks.is_some())
}

/// Checks only holdings that grew: below a lowered quota, a project keeps what it has and can still
/// change the rest.
fn check(quota: &Quota, before: &Counts, after: &Counts) -> CheckResult {
    let limits = &quota.limits;
    let plain = [
        ("machines", limits.machines, before.machines, after.machines),
        ("networks", limits.networks, before.networks, after.networks),
        ("ips", limits.ips, before.ips, after.ips),
    ];
    for (what, limit, before, after) in plain {
        if let Some(limit) = limit {
            check_one(quota, what, limit, before, after)?;
        }
    }
    for (size, limit) in &limits.machines_of_size {
        let of = |counts: &Counts| counts.machines_of_size.get(size).copied().unwrap_or(0);
        let what = format!("machines of size \"{size}\"");
        check_one(quota, &what, *limit, of(before), of(after))?;
    }
    Ok(())
}

fn check_one(quota: &Quota, what: &str, limit: u32, before: u32, after: u32) -> CheckResult {
    if after <= limit || after <= before {
        return Ok(());
    }
    let (kind, id) = match &quota.subject {
        QuotaSubject::Tenant(login) => ("tenant", login.to_string()),
        QuotaSubject::Project(id) => ("project", id.to_string()),
    };
    let more = after - before;
    let message = format!("{kind} \"{id}\" has {before} of {limit} {what} and wants {more} more");
    Err(Error::new(ErrorCode::QuotaExceeded, message).object(kind, id))
}
