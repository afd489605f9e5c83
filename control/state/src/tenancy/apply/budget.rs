//! Budgets: bounds per user, tenant and project that always apply, checked in the command that adds
//! an object.
//!
//! They keep a single user from filling the memory of control. An administrator changes them:
//! `metalmesh settings set`.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_types::{NetworkId, ProjectId, TenantId};

use crate::cluster::read::settings;
use crate::levels::{SHARED_BOUNDS, feature_level};
use crate::network::entity::{Ip, Network};
use crate::reply::CheckResult;
use crate::tables::Tx;

pub(crate) fn too_many(whose: &str, count: usize, what: &str, way_out: &str) -> Error {
    let message = format!("{whose} has {count} {what} already, as many as one may have here");
    Error::new(ErrorCode::TooMany, message).hint(way_out)
}

pub(crate) fn is_full(count: usize, budget: u32) -> bool {
    u64::try_from(count).is_ok_and(|count| count >= u64::from(budget))
}

/// Refuses another tenant of a user at its budget.
pub(crate) fn check_tenants(tx: &Tx<'_>, owner: &TenantId) -> CheckResult {
    let made = tx.tables().index().maker_tenants.get(tx.actor);
    let count = made.map_or(0, std::collections::BTreeSet::len);
    let budget = settings(tx.tables()).budgets.tenants_per_user;
    if !is_full(count, budget) {
        return Ok(());
    }
    let way_out = "delete those that nobody needs: metalmesh tenant delete LOGIN; an \
                   administrator raises the bound: metalmesh settings set --tenants-per-user";
    Err(too_many(owner.as_str(), count, "tenants", way_out))
}

/// Refuses another project of a tenant at its budget.
pub(crate) fn check_projects(tx: &Tx<'_>, tenant: &TenantId) -> CheckResult {
    let projects = tx.tables().index().tenant_projects.get(tenant);
    let count = projects.map_or(0, std::collections::BTreeSet::len);
    let budget = settings(tx.tables()).budgets.projects_per_tenant;
    if !is_full(count, budget) {
        return Ok(());
    }
    let way_out = "delete those that nobody needs: metalmesh project delete ID; an \
                   administrator raises the bound: metalmesh settings set --projects-per-tenant";
    Err(too_many(
        &format!("tenant \"{tenant}\""),
        count,
        "projects",
        way_out,
    ))
}

/// Refuses another invite of a user at its budget.
pub(crate) fn check_invites(tx: &Tx<'_>) -> CheckResult {
    let open = tx.tables().index().inviter_invites.get(tx.actor);
    let count = open.map_or(0, std::collections::BTreeSet::len);
    let budget = settings(tx.tables()).budgets.invites_per_user;
    if !is_full(count, budget) {
        return Ok(());
    }
    let way_out = "delete those that nobody needs, or wait until they end; an administrator \
                   raises the bound: metalmesh settings set --invites-per-user";
    Err(too_many(tx.actor, count, "open invites", way_out))
}

/// Refuses addresses or networks beyond a project's budget, which applies where no quota does. The
/// tables already hold the new ones.
pub(crate) fn check_project(tx: &Tx<'_>, project: ProjectId, bounded: Bounded) -> CheckResult {
    let index = tx.tables().index();
    let budgets = settings(tx.tables()).budgets;
    let ips = index.project_ips.get(&project);
    let ips = ips.map_or(0, std::collections::BTreeSet::len);
    let networks = index.project_networks.get(&project).copied().unwrap_or(0);
    let over_ips = !bounded.ips && is_full(ips, budgets.ips_per_project.saturating_add(1));
    check_announced(tx, project)?;
    let over_networks = !bounded.networks && networks > budgets.networks_per_project;
    let (count, what) = match (over_ips, over_networks) {
        (true, _) => (ips - 1, "addresses"),
        (_, true) => (
            usize::try_from(networks - 1).unwrap_or(usize::MAX),
            "networks",
        ),
        _ => return Ok(()),
    };
    let way_out = "delete those that nobody needs; an administrator sets a quota: metalmesh quota \
                   set --of-project ID";
    Err(too_many(
        &format!("project \"{project}\""),
        count,
        what,
        way_out,
    ))
}

/// Most single addresses that a project announces beside the prefixes of its own networks: those in
/// networks that it shares with others, such as external ones. A switch takes as many prefixes for
/// a port (`PORT_PREFIXES_MAX` of the mesh contract), and further ones would not pass there. No
/// quota lifts it.
const ANNOUNCED_IPS_MAX: usize = 4_096;

/// Refuses an address beyond [`ANNOUNCED_IPS_MAX`]. The tables already hold it.
pub(crate) fn check_announced(tx: &Tx<'_>, project: ProjectId) -> CheckResult {
    let tables = tx.tables();
    let index = tables.index();
    let ips = index.project_ips.get(&project).into_iter().flatten();
    let is_bound = feature_level(tables) >= SHARED_BOUNDS;
    if !is_bound || ips.clone().count() <= ANNOUNCED_IPS_MAX {
        return Ok(());
    }
    let mut announced: BTreeMap<&NetworkId, usize> = BTreeMap::new();
    for ip in ips.filter_map(|key| tables.get::<Ip>(key)) {
        let network = tables.get::<Network>(&ip.network);
        if network.is_some_and(|network| network.project != Some(project)) {
            *announced.entry(&ip.network).or_default() += 1;
        }
    }
    let sum: usize = announced.values().sum();
    let largest = announced.into_iter().max_by_key(|(_, count)| *count);
    let Some((network, count)) = largest.filter(|_| sum > ANNOUNCED_IPS_MAX) else {
        return Ok(());
    };
    let rule = format!(
        "project \"{project}\" would have {sum} addresses in networks of others, {count} of them in \
         network \"{network}\": switches let it announce {ANNOUNCED_IPS_MAX}"
    );
    let error = Error::new(ErrorCode::TooMany, rule).object("network", network);
    Err(error.hint("release those that nobody needs, or spread them over several projects"))
}

/// The resources of a project that a quota bounds, so that no budget applies to them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounded {
    pub(crate) ips: bool,
    pub(crate) networks: bool,
}
