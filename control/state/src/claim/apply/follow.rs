//! Steps of claims and hosts that follow from a command.
//!
//! The command has written machines, hosts, pools or quotas. Here hosts are brought up to date,
//! claims take their next step, and hosts that became free are offered to claims that wait, all of
//! it in the same entry of the log.

use std::collections::BTreeSet;

use proto_types::{ClaimId, MachineId, ProjectId};

use super::settle::{lose, settle};
use super::{bind, provision};
use crate::claim::entity::Claim;
use crate::machine::entity::{BmcOrder, Machine};
use crate::pool::entity::{HostShape, PoolHost};
use crate::tables::{Kind, QueuePlace, Record, Tx};
use crate::tenancy::entity::{Project, Quota, QuotaSubject};

/// Most hosts that a command offers, and claims that it wakes. The tick looks at the others.
const WAKES_MAX: usize = 256;

/// Takes on every claim and host that the command concerns.
pub(crate) fn follow(tx: &mut Tx<'_>) {
    if tx.tables().index().hosts.has_no_pool() {
        return;
    }
    let ended = removed_hosts(tx);
    for claim in ended {
        provision::free(tx, claim);
        lose(tx, claim, "its host was taken out of the pool", None);
    }
    for machine in touched_machines(tx) {
        settle(tx, machine);
    }
    for machine in opened_hosts(tx) {
        bind::offer(tx, machine);
    }
    let claims = &tx.tables().index().claims;
    let heads: BTreeSet<QueuePlace> = match tx.touched_keys(Kind::HostPool).next() {
        Some(_) => claims.heads().collect(),
        None => {
            let woken = woken_projects(tx);
            let heads = woken.iter().flat_map(|project| claims.heads_of(*project));
            heads.collect()
        }
    };
    wake(tx, heads);
}

/// Has claims search again in the order of their places, and behind each that finds a host the next one
/// of its class.
fn wake(tx: &mut Tx<'_>, mut line: BTreeSet<QueuePlace>) {
    for _ in 0..WAKES_MAX {
        let Some((_, _, id)) = line.pop_first() else {
            return;
        };
        let claim = tx.get::<Claim>(&id);
        let class = claim.map(|claim| (claim.project, claim.queue.class.clone()));
        if bind::seek(tx, id) {
            let claims = &tx.tables().index().claims;
            line.extend(class.and_then(|(project, class)| claims.head(project, &class)));
        }
    }
}

/// Claims whose host is not in a pool any more.
fn removed_hosts(tx: &Tx<'_>) -> Vec<ClaimId> {
    let keys = tx.touched_keys(Kind::PoolHost);
    let gone = keys.filter_map(|key| {
        let id: MachineId = key.parse().ok()?;
        let before = host_before(tx, key)?;
        let binding = before.binding.as_ref()?;
        tx.get::<PoolHost>(&id).is_none().then_some(binding.claim)
    });
    gone.collect()
}

fn host_before<'a>(tx: &'a Tx<'_>, key: &str) -> Option<&'a PoolHost> {
    match tx.before(Kind::PoolHost, key)? {
        Record::PoolHost(host) => Some(host),
        _ => None,
    }
}

/// Machines that the command wrote, or whose events, host or orders it wrote.
fn touched_machines(tx: &Tx<'_>) -> BTreeSet<MachineId> {
    let mut machines = BTreeSet::new();
    for kind in [Kind::Machine, Kind::EventLog, Kind::PoolHost] {
        let keys = tx.touched_keys(kind);
        let ids = keys.filter_map(|key| key.parse::<MachineId>().ok());
        machines.extend(ids);
    }
    let orders = tx.touched_keys(Kind::BmcOrder);
    let orders = orders.filter_map(|key| tx.get::<BmcOrder>(&key.parse().ok()?));
    machines.extend(orders.map(|order| order.machine));
    machines.retain(|id| tx.get::<PoolHost>(id).is_some());
    machines
}

/// Hosts that a claim could get now, and could not, or not as this one, before the command.
fn opened_hosts(tx: &Tx<'_>) -> Vec<MachineId> {
    let keys = tx.touched_keys(Kind::PoolHost);
    let opened = keys.filter_map(|key| {
        let host = tx.get::<PoolHost>(&key.parse().ok()?)?;
        let before = host_before(tx, key);
        let was_open = before.is_some_and(|before| {
            before.is_open()
                && before.reserved == host.reserved
                && HostShape::of(before) == HostShape::of(host)
        });
        (host.is_open() && !was_open).then_some(host.machine)
    });
    opened.take(WAKES_MAX).collect()
}

/// Projects whose claims may be served now: a quota has room, a reservation is over, or an
/// administrator gave them another label.
fn woken_projects(tx: &Tx<'_>) -> BTreeSet<ProjectId> {
    let mut woken = BTreeSet::new();
    for key in tx.touched_keys(Kind::PoolHost) {
        let Some(before) = host_before(tx, key) else {
            continue;
        };
        let id = key.parse::<MachineId>().ok();
        let now = id.and_then(|id| tx.get::<PoolHost>(&id));
        let had = before.binding.as_ref().map(|binding| binding.project);
        let has = now.and_then(|now| now.binding.as_ref().map(|binding| binding.project));
        if let Some(project) = had.filter(|_| had != has) {
            woken.extend(of_tenant(tx, project));
        }
        let was_reserved = before.reserved.as_ref();
        let is_over = now.is_none_or(|now| now.reserved.is_none());
        woken.extend(
            was_reserved
                .filter(|_| is_over)
                .map(|reserved| reserved.project),
        );
    }
    for key in tx.touched_keys(Kind::Machine) {
        let Some(Record::Machine(before)) = tx.before(Kind::Machine, key) else {
            continue;
        };
        let Some(had) = before.allocation.as_ref().map(|found| found.project) else {
            continue;
        };
        let now = tx.get::<Machine>(&before.id);
        if now.is_none_or(|now| now.allocation.is_none()) {
            woken.extend(of_tenant(tx, had));
        }
    }
    for key in tx.touched_keys(Kind::ProjectLabels) {
        woken.extend(key.parse::<ProjectId>().ok());
    }
    for key in tx.touched_keys(Kind::Quota) {
        woken.extend(of_quota(tx, key));
    }
    let claims = &tx.tables().index().claims;
    woken.retain(|project| claims.class_count(*project) > 0);
    woken
}

/// The projects of a quota's subject, by the key of the quota.
fn of_quota(tx: &Tx<'_>, key: &str) -> Vec<ProjectId> {
    let subject = match key.split_once('/') {
        Some(("project", id)) => id.parse().ok().map(QuotaSubject::Project),
        Some(("tenant", login)) => login.parse().ok().map(QuotaSubject::Tenant),
        _ => None,
    };
    match subject {
        Some(QuotaSubject::Project(id)) => vec![id],
        Some(QuotaSubject::Tenant(login)) => {
            let projects = tx.tables().index().tenant_projects.get(&login);
            projects.into_iter().flatten().copied().collect()
        }
        None => Vec::new(),
    }
}

/// A project and the others of its tenant, if the tenant has a quota.
fn of_tenant(tx: &Tx<'_>, project: ProjectId) -> Vec<ProjectId> {
    let found = tx.get::<Project>(&project);
    let Some(tenant) = found.map(|found| found.tenant.clone()) else {
        return vec![project];
    };
    let subject = QuotaSubject::Tenant(tenant.clone());
    if tx.get::<Quota>(&subject).is_none() {
        return vec![project];
    }
    let projects = tx.tables().index().tenant_projects.get(&tenant);
    projects.into_iter().flatten().copied().collect()
}
