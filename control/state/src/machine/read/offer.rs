//! Which machines are on offer, and why others are not.

use std::sync::Arc;

use proto_types::{MachineId, PartitionId, SizeId};

use crate::cluster::read::restored;
use crate::machine::entity::{Availability, EventKind, EventLog, Liveliness, Machine, Phase};
use crate::machine::read::cables::issues;
use crate::tables::Tables;

/// Why a machine cannot be allocated; tainted ones can be by their id.
pub(crate) fn obstacle(tables: &Tables, machine: &Machine) -> Option<String> {
    let log = tables.get::<EventLog>(&machine.id);
    let state = log.and_then(|log| log.state);
    if machine.phase != Phase::Waiting || state != Some(EventKind::Waiting) {
        let reason = if machine.reason.is_empty() {
            String::new()
        } else {
            format!(" ({})", machine.reason)
        };
        return Some(format!("it is {}{reason}", machine.phase));
    }
    if restored(tables).is_some() {
        let why =
            "the cluster was restored from a backup, and its operator did not reconcile it yet";
        return Some(why.into());
    }
    if machine.dirty {
        return Some("its disks are not clean".into());
    }
    if machine.size.is_none() {
        return Some("no size matches it".into());
    }
    if let Some(why) = issues::trouble(tables, machine) {
        return Some(why);
    }
    if machine.condition.state == Availability::Locked {
        return Some(format!("it is locked: {}", machine.condition.description));
    }
    let is_alive =
        log.is_some_and(|log| log.liveliness == Liveliness::Alive && !log.failed_reclaim);
    (!is_alive).then(|| "it gives no sign of life".into())
}

/// Machines of a size in a partition that anyone may have now, rack by rack.
pub(crate) fn candidates<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    size: &SizeId,
) -> impl Iterator<Item = &'a Arc<Machine>> {
    let class = (partition.clone(), size.clone());
    let racks = tables.index().offered.get(&class).into_iter().flatten();
    racks
        .flat_map(|(_, machines)| machines)
        .filter_map(|id| tables.get::<Machine>(id))
        .filter(|machine| obstacle(tables, machine).is_none())
}

/// Why a machine is not on offer now; none when it is. Tainted ones can be had by their id.
pub fn machine_obstacle(tables: &Tables, machine: MachineId) -> Option<String> {
    let Some(machine) = tables.get::<Machine>(&machine) else {
        return Some("it is not known".into());
    };
    if machine.allocation.is_some() {
        return Some("it is allocated".into());
    }
    obstacle(tables, machine)
}

/// Machines of a size in a partition that anyone may have now, rack by rack.
pub fn allocatable_machines<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    size: &SizeId,
) -> impl Iterator<Item = &'a Arc<Machine>> {
    candidates(tables, partition, size)
}
