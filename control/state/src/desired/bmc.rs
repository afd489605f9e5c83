//! Desired state of BMC agents: their open orders.

use std::sync::Arc;

use proto_types::{MachineId, PartitionId};

use crate::cluster::read::{reconciled_at, restored};
use crate::machine::entity::{BmcAction, BmcOrder, Machine, OrderPurpose, OrderState};
use crate::machine::read::{binding_epoch, is_left_alone, is_of_earlier_binding};
use crate::tables::Tables;

/// `true` if the order waits for the reconciliation of a restored state: an order from before the
/// backup, or one of the life cycle. The machine may belong to another tenant by now.
fn is_held(tables: &Tables, order: &BmcOrder) -> bool {
    restored(tables).is_some_and(|restored| {
        order.purpose == OrderPurpose::Life || order.created_at <= restored.made_at
    })
}

/// `true` if the machine's state holds the order. More than one BMC claims the machine: the order
/// could power off another one. Or the machine was locked: then only its LED may be switched.
fn is_machine_held(machine: &Machine, order: &BmcOrder) -> bool {
    let is_led = matches!(order.action, BmcAction::LedOn | BmcAction::LedOff);
    machine.is_bmc_contested() || (!is_led && is_left_alone(machine))
}

/// Open orders of a partition that are not held, oldest first.
pub fn bmc_desired(tables: &Tables, partition: &PartitionId) -> Vec<Arc<BmcOrder>> {
    let mut orders: Vec<_> = tables
        .index()
        .open_orders
        .get(partition)
        .into_iter()
        .flatten()
        .filter_map(|id| tables.get::<BmcOrder>(id))
        .filter(|order| order.state == OrderState::Open)
        .filter(|order| !is_held(tables, order) && !is_of_earlier_binding(tables, order))
        .filter(|order| {
            let machine = tables.get::<Machine>(&order.machine);
            machine.is_none_or(|machine| !is_machine_held(machine, order))
        })
        .cloned()
        .collect();
    orders.sort_by_key(|order| order.sequence);
    orders
}

/// Number of a machine's last binding to a claim, which each order for it carries. 0 for one that was
/// never bound.
pub fn machine_epoch(tables: &Tables, machine: MachineId) -> u64 {
    let machine = tables.get::<Machine>(&machine);
    machine.map_or(0, |machine| binding_epoch(tables, machine))
}

/// The count that the epochs of a machine's orders belong to: the time at which control first knew the
/// machine, or at which it was restored from a backup if that is later, milliseconds. Epochs of an earlier
/// count come before it, however high: they go back with a restore, and when a machine is forgotten.
/// Never 0.
pub fn epoch_era(tables: &Tables, machine: MachineId) -> u64 {
    let known = tables.get::<Machine>(&machine);
    let known_at = known.map(|machine| machine.meta.created_at);
    // Until the reconciliation the backup's time: orders that are not held then must reach agents too.
    let backup = restored(tables).map(|restored| restored.made_at);
    let since = known_at.max(backup).unwrap_or_default();
    since.max(reconciled_at(tables)).ms().max(1)
}
