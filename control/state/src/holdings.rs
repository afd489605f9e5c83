//! Holdings of tenants and projects, counted over all resources: quotas bound them.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{ProjectId, SizeId};

use crate::machine::entity::Machine;
use crate::pool::entity::PoolHost;
use crate::tables::Tables;
use crate::tenancy::entity::{Project, Quota, QuotaSubject};

/// Counts of everything that a quota can bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocated machines.
    pub machines: u32,
    /// Allocated machines by size, of the sizes that the quota bounds.
    pub machines_of_size: BTreeMap<SizeId, u32>,
    /// Networks.
    pub networks: u32,
    /// Addresses.
    pub ips: u32,
}

/// The holdings of a quota's subject.
pub fn counts(tables: &Tables, quota: &Quota) -> Counts {
    let projects = projects_of(tables, &quota.subject);
    let index = tables.index();
    let sizes = quota.limits.machines_of_size.keys();
    let mut counts = Counts {
        machines_of_size: sizes.map(|size| (size.clone(), 0)).collect(),
        ..Counts::default()
    };
    let number = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    for project in projects {
        counts.networks += index.project_networks.get(&project).copied().unwrap_or(0);
        counts.ips += number(index.project_ips.get(&project).map_or(0, BTreeSet::len));
        let machines = machines_of(tables, project);
        counts.machines += number(machines.clone().count());
        // Only quotas by size need to look at each machine; the others read the indexes.
        if counts.machines_of_size.is_empty() {
            continue;
        }
        for machine in machines.filter_map(|id| tables.get::<Machine>(id)) {
            let size = machine.size.as_ref();
            if let Some(number) = size.and_then(|size| counts.machines_of_size.get_mut(size)) {
                *number += 1;
            }
        }
    }
    counts
}

/// The projects that a quota bounds together.
fn projects_of(tables: &Tables, subject: &QuotaSubject) -> Vec<ProjectId> {
    match subject {
        QuotaSubject::Project(id) => vec![*id],
        QuotaSubject::Tenant(login) => {
            let own = tables.index().tenant_projects.get(login);
            own.into_iter().flatten().copied().collect()
        }
    }
}

/// Machines that a project has: allocated ones, and hosts that are bound to its claims.
fn machines_of(
    tables: &Tables,
    project: ProjectId,
) -> impl Iterator<Item = &proto_types::MachineId> + Clone {
    let index = tables.index();
    let allocated = index.project_machines.get(&project);
    let bound = index.hosts.projects.get(&project).into_iter().flatten();
    // A host that is bound and allocated is one machine.
    let bound = bound.filter(move |id| !allocated.is_some_and(|ids| ids.contains(*id)));
    allocated.into_iter().flatten().chain(bound)
}

/// `true` if a project may reserve one more host of a size: as many as its quotas let it have. Reserved hosts
/// count as nobody's machines, so that a project could keep a whole pool from all others by one claim
/// after the other.
pub(crate) fn may_reserve(tables: &Tables, project: ProjectId, size: Option<&SizeId>) -> bool {
    let fits = |limit: Option<&u32>, count: usize| {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        limit.is_none_or(|limit| count < *limit)
    };
    quotas(tables, project).iter().all(|quota| {
        let projects = projects_of(tables, &quota.subject).into_iter();
        let reserved = projects.flat_map(|project| reserved_hosts(tables, project));
        let reserved: Vec<&PoolHost> = reserved.collect();
        let of_size = reserved.iter();
        let of_size = of_size.filter(|host| host.seen.size.as_ref() == size);
        let of_size_limit = size.and_then(|size| quota.limits.machines_of_size.get(size));
        fits(quota.limits.machines.as_ref(), reserved.len()) && fits(of_size_limit, of_size.count())
    })
}

/// Hosts that are reserved for a project.
fn reserved_hosts(tables: &Tables, project: ProjectId) -> impl Iterator<Item = &PoolHost> {
    let reserved = &tables.index().hosts.reserved;
    let own = reserved.range((project, String::new())..);
    let own = own.take_while(move |((of, _), _)| *of == project);
    let ids = own.flat_map(|(_, hosts)| hosts);
    ids.filter_map(|id| tables.get::<PoolHost>(id).map(AsRef::as_ref))
}

/// The quotas of a project: its own and its tenant's.
pub(crate) fn quotas(tables: &Tables, project: ProjectId) -> Vec<Quota> {
    let tenant = tables
        .get::<Project>(&project)
        .map(|project| project.tenant.clone());
    let subjects = [
        Some(QuotaSubject::Project(project)),
        tenant.map(QuotaSubject::Tenant),
    ];
    let found = subjects.iter().flatten();
    found
        .filter_map(|subject| tables.get::<Quota>(subject))
        .map(|quota| Quota::clone(quota))
        .collect()
}

/// The room that quotas leave a project for one more machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct MachineRoom {
    is_full: bool,
    full_sizes: BTreeSet<SizeId>,
}

impl MachineRoom {
    /// `true` if one more machine of a size is within the quotas.
    pub(crate) fn takes(&self, size: Option<&SizeId>) -> bool {
        !self.is_full && size.is_none_or(|size| !self.full_sizes.contains(size))
    }
}

/// The room for one more machine of a project.
pub(crate) fn machine_room(tables: &Tables, project: ProjectId) -> MachineRoom {
    let mut room = MachineRoom::default();
    for quota in quotas(tables, project) {
        let held = counts(tables, &quota);
        let machines = quota.limits.machines;
        room.is_full |= machines.is_some_and(|limit| held.machines >= limit);
        let sizes = quota.limits.machines_of_size.iter();
        let full = sizes.filter(|(size, limit)| {
            let of_size = held.machines_of_size.get(*size).copied().unwrap_or(0);
            of_size >= **limit
        });
        room.full_sizes.extend(full.map(|(size, _)| size.clone()));
    }
    room
}
