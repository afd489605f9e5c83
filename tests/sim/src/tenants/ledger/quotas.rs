//! Quotas: no project has more than its quota allows, unless the quota was lowered meanwhile, and the
//! numbers that the state decides by are those that a count comes to.

use std::collections::{BTreeMap, BTreeSet};

use control_state::{Machine, PoolHost, Quota, QuotaSubject, Tables, query};
use proto_types::{MachineId, ProjectId};

use super::applied::Applied;

/// Machines of each project: those that it was given, and hosts of its claims.
pub(super) type HeldMachines = BTreeMap<ProjectId, BTreeSet<MachineId>>;

/// The machines of all projects after the last command.
#[derive(Debug, Default)]
pub(super) struct Holdings(HeldMachines);

/// Counts what each project has, from the rows of machines and hosts alone.
pub(super) fn held(tables: &Tables) -> HeldMachines {
    let mut held = HeldMachines::new();
    for machine in tables.all::<Machine>() {
        if let Some(allocation) = &machine.allocation {
            held.entry(allocation.project)
                .or_default()
                .insert(machine.id);
        }
    }
    for host in tables.all::<PoolHost>() {
        if let Some(binding) = &host.binding {
            held.entry(binding.project)
                .or_default()
                .insert(host.machine);
        }
    }
    held
}

fn count(held: &HeldMachines, project: ProjectId) -> usize {
    held.get(&project).map_or(0, BTreeSet::len)
}

/// Has the project room for one more machine?
pub(super) fn has_room(tables: &Tables, held: &HeldMachines, project: ProjectId) -> bool {
    let quota = tables.get::<Quota>(&QuotaSubject::Project(project));
    let limit = quota.and_then(|quota| quota.limits.machines);
    limit.is_none_or(|limit| count(held, project) < usize::try_from(limit).unwrap_or(usize::MAX))
}

impl Holdings {
    /// Had the project room for one more machine before the command?
    pub(super) fn had_room(&self, tables: &Tables, project: ProjectId) -> bool {
        has_room(tables, &self.0, project)
    }

    pub(super) fn check(&mut self, applied: &Applied<'_>, now: HeldMachines) -> Result<(), String> {
        for quota in applied.tables.all::<Quota>() {
            let QuotaSubject::Project(project) = &quota.subject else {
                continue;
            };
            let (before, after) = (count(&self.0, *project), count(&now, *project));
            if before == after {
                continue;
            }
            let counted = query::counts(applied.tables, quota).machines;
            if usize::try_from(counted) != Ok(after) {
                return Err(format!(
                    "project {project} has {after} machines, and the state counts {counted}"
                ));
            }
            let limit = quota.limits.machines.unwrap_or(u32::MAX);
            if after > before && counted > limit {
                return Err(format!("project {project} has {after} machines of {limit}"));
            }
        }
        self.0 = now;
        Ok(())
    }
}
