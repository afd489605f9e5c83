//! Machines on offer, and the obstacles of others.

use std::sync::Arc;

use proto_types::{MachineId, PartitionId, SizeId};

use crate::cluster::read::restored;
use crate::machine::entity::{Availability, EventKind, EventLog, Liveliness, Machine, Phase};
use crate::machine::read::cables::issues;
use crate::node::read::withholding_reason;
use crate::tables::Tables;

/// The reason why a machine cannot be allocated; `None` means that it can. A taint is no obstacle:
/// it only keeps a machine out of the index of machines on offer.
pub(crate) fn obstacle(tables: &Tables, machine: &Machine) -> Option<String> {
    let log = tables.get::<EventLog>(&machine.id);
    let state = log.and_then(|log| log.state);
    // Both are needed: the phase says that control has wiped it, the event that hammer still waits
    // there and would see the allocation.
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
    if machine.withheld {
        return Some(withholding_reason(tables, machine.id));
    }
    if machine.dirty {
        return Some("its disks are not clean".into());
    }
    if machine.size.is_none() {
        return Some("no size matches it".into());
    }
    // A tenant on a machine whose ports cannot be moved would stay in the provisioning segment.
    if let Some(why) = issues::trouble(tables, machine) {
        return Some(why);
    }
    if machine.condition.state == Availability::Locked {
        return Some(format!("it is locked: {}", machine.condition.description));
    }
    // A machine that phones home after its release (`failed_reclaim`) runs the last tenant's
    // system.
    let is_alive =
        log.is_some_and(|log| log.liveliness == Liveliness::Alive && !log.failed_reclaim);
    if !is_alive {
        return Some("it gives no sign of life".into());
    }
    // Its release begins with the BMC: nobody could take it back from a tenant.
    let unreached = machine.bmc.as_ref().filter(|bmc| bmc.unreached)?;
    let why = match unreached.was_read() {
        true => "no agent reaches its BMC",
        false => "no agent has read its BMC yet",
    };
    Some(why.into())
}

/// Machines of a size in a partition that can be allocated now, rack by rack.
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

/// The reason why a machine cannot be allocated now; `None` means that it can. A tainted machine
/// can be allocated by its id.
pub fn machine_obstacle(tables: &Tables, machine: MachineId) -> Option<String> {
    let Some(machine) = tables.get::<Machine>(&machine) else {
        return Some("it is not known".into());
    };
    if machine.allocation.is_some() {
        return Some("it is allocated".into());
    }
    obstacle(tables, machine)
}

/// Machines of a size in a partition that can be allocated now, rack by rack.
pub fn allocatable_machines<'a>(
    tables: &'a Tables,
    partition: &PartitionId,
    size: &SizeId,
) -> impl Iterator<Item = &'a Arc<Machine>> {
    candidates(tables, partition, size)
}
