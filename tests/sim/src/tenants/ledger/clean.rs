//! Nothing is offered dirty: a host that a claim may get, and a machine that a project gets, has a disk
//! that was wiped in truth, and not only by somebody's word, or a host is kept with the data of that very
//! project.

use std::collections::BTreeMap;

use control_state::{Machine, PoolHost};
use proto_types::{MachineId, ProjectId};

use super::applied::Applied;
use crate::tenants::chassis::Disk;

pub(super) fn check(
    applied: &Applied<'_>,
    disks: &BTreeMap<MachineId, Disk>,
) -> Result<(), String> {
    // Of a host, also data of the project that it is for.
    let is_fit = |machine: &MachineId, project: Option<ProjectId>| match disks.get(machine) {
        Some(Disk::Clean) => true,
        Some(Disk::Data(of)) => Some(*of) == project,
        _ => false,
    };
    for machine in applied.allocations() {
        let project = machine.allocation.as_ref().map(|given| given.project);
        if !is_fit(&machine.id, project.filter(|_| machine.pool.is_some())) {
            let disk = disks.get(&machine.id);
            return Err(format!(
                "machine {} was given to {project:?} with {disk:?}",
                machine.id
            ));
        }
    }
    for host in applied.bindings().filter_map(|host| host.after) {
        let project = host.binding.as_ref().map(|binding| binding.project);
        if !is_fit(&host.machine, project) {
            let disk = disks.get(&host.machine);
            return Err(format!("{host:?} was bound with {disk:?}"));
        }
    }
    for host in applied.hosts().filter_map(|host| host.after) {
        let machine = applied.tables.get::<Machine>(&host.machine);
        let is_dirty = machine.is_none_or(|machine| machine.dirty);
        let project = host.reserved.as_ref().map(|reserved| reserved.project);
        if is_offered(host) && (is_dirty || !is_fit(&host.machine, project)) {
            let disk = disks.get(&host.machine);
            return Err(format!("{host:?} is on offer with {disk:?}"));
        }
    }
    Ok(())
}

/// May the next claim get it?
fn is_offered(host: &PoolHost) -> bool {
    host.binding.is_none() && host.cordon.is_none() && host.is_clean() && host.seen.is_ready
}
