//! Holdings of tenants and projects, counted over all resources: quotas bound them.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{ProjectId, SizeId};

use crate::machine::read::project_machines;
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
    let projects: Vec<ProjectId> = match &quota.subject {
        QuotaSubject::Project(id) => vec![*id],
        QuotaSubject::Tenant(login) => {
            let own = tables
                .all::<Project>()
                .filter(|project| project.tenant == *login);
            own.map(|project| project.id).collect()
        }
    };
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
        counts.machines += number(
            index
                .project_machines
                .get(&project)
                .map_or(0, BTreeSet::len),
        );
        // Only quotas by size need to look at each machine; the others read the indexes.
        if counts.machines_of_size.is_empty() {
            continue;
        }
        for machine in project_machines(tables, project) {
            let size = machine.size.as_ref();
            if let Some(number) = size.and_then(|size| counts.machines_of_size.get_mut(size)) {
                *number += 1;
            }
        }
    }
    counts
}
