//! Machines by owner and lessee, and leases that are due.

use std::sync::Arc;

use proto_types::{MachineId, ProjectId, Timestamp};

use crate::cluster::read::restored;
use crate::lease::entity::Lease;
use crate::machine::entity::Machine;
use crate::machine::read::is_left_alone;
use crate::tables::Tables;

/// Machines that a project owns or leases, in the order of ids.
pub fn tenured_machines(
    tables: &Tables,
    project: ProjectId,
) -> impl Iterator<Item = &Arc<Machine>> {
    let ids = tables.index().tenured_machines.get(&project);
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| tables.get::<Machine>(id))
}

/// Leases that a tick changes now: it warns, or ends them. None while a restored state waits for its
/// operator, and no end for a locked machine, which control leaves alone.
pub(crate) fn due_leases(tables: &Tables, now: Timestamp) -> impl Iterator<Item = &Arc<Lease>> {
    let is_held = restored(tables).is_some();
    let due = tables.index().due_leases.iter();
    due.take_while(move |(at, _)| !is_held && *at <= now)
        .filter_map(|(_, machine)| tables.get::<Lease>(machine))
        .filter(move |lease| !(lease.is_over(now) && is_locked(tables, lease.machine)))
}

fn is_locked(tables: &Tables, machine: MachineId) -> bool {
    let machine = tables.get::<Machine>(&machine);
    machine.is_some_and(|machine| is_left_alone(machine))
}
