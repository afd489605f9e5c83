//! Leases: a machine is used by its lessee as long as the lease runs, and by nobody beyond its date.

use control_state::{
    Availability, ClusterClock, Kind, Lease, Machine, MachinePool, Op, Record, Tables,
};
use proto_types::Timestamp;

use super::applied::Applied;

pub(super) fn check(applied: &Applied<'_>) -> Result<(), String> {
    for machine in applied.machines().filter_map(|machine| machine.after) {
        let lease = applied.tables.get::<Lease>(&machine.id);
        let tenure = &machine.tenure;
        let is_agreed = lease.map(|lease| lease.lessee) == tenure.lessee
            && lease.map(|lease| lease.expires_at) == tenure.lease_expires_at
            && lease.is_none_or(|lease| Some(lease.owner) == tenure.owner);
        if !is_agreed {
            return Err(format!("{machine:?} does not agree with {lease:?}"));
        }
        if let (Some(used), MachinePool::Of(user)) = (&machine.allocation, tenure.pool())
            && !machine.is_leaving()
            && used.project != user
        {
            return Err(format!("project {} uses {machine:?}", used.project));
        }
    }
    for machine in applied.allocations() {
        let lease = applied.tables.get::<Lease>(&machine.id);
        if lease.is_some_and(|lease| lease.is_over(applied.command.now)) {
            return Err(format!("{machine:?} was given beyond the end of {lease:?}"));
        }
    }
    Ok(())
}

/// After a tick no lease is over.
pub(super) fn check_tick(applied: &Applied<'_>) -> Result<(), String> {
    let Some(now) = believed(applied.tables, applied.command.now) else {
        return Ok(());
    };
    let mut leases = applied.tables.all::<Lease>();
    let over = leases.find(|lease| lease.is_over(now) && !is_locked(applied.tables, lease));
    match over {
        None => Ok(()),
        Some(lease) => Err(format!("a tick at {now} left {lease:?}")),
    }
}

/// The time that a tick is judged by. `None` means that its clock is not believed.
fn believed(tables: &Tables, now: Timestamp) -> Option<Timestamp> {
    let clock = tables.get::<ClusterClock>(&ClusterClock::ONE.to_owned())?;
    let is_believed = clock.held.is_none() && !clock.is_jump(now);
    is_believed.then(|| now.max(clock.time))
}

fn is_locked(tables: &Tables, lease: &Lease) -> bool {
    let machine = tables.get::<Machine>(&lease.machine);
    machine.is_some_and(|machine| machine.condition.state == Availability::Locked)
}

/// Leases that a tick ended.
pub(super) fn overrun<'a>(applied: &Applied<'a>) -> impl Iterator<Item = &'a Lease> {
    let is_tick = matches!(applied.command.op, Op::Tick(_));
    let ended = applied
        .changes
        .iter()
        .filter(move |change| is_tick && change.kind == Kind::Lease && change.record.is_none());
    ended.filter_map(|change| match change.before.as_ref()? {
        Record::Lease(lease) => Some(lease.as_ref()),
        _ => None,
    })
}
