//! What BMC agents have to do.

use std::sync::Arc;

use proto_types::PartitionId;

use crate::cluster::read::restored;
use crate::machine::entity::{BmcAction, BmcOrder, Machine, OrderPurpose, OrderState};
use crate::machine::read::is_left_alone;
use crate::tables::Tables;

/// `true` for what was ordered before a restore, and for what the life cycle orders until somebody
/// has reconciled it: the machine may be another tenant's by now.
fn is_held(tables: &Tables, order: &BmcOrder) -> bool {
    restored(tables).is_some_and(|restored| {
        order.purpose == OrderPurpose::Life || order.created_at <= restored.made_at
    })
}

/// `true` for orders to a machine that more than one BMC claims, as nobody knows which of them is
/// the machine's, and for all but those of its light to a machine that was locked meanwhile.
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
        .filter(|order| !is_held(tables, order))
        .filter(|order| {
            let machine = tables.get::<Machine>(&order.machine);
            machine.is_none_or(|machine| !is_machine_held(machine, order))
        })
        .cloned()
        .collect();
    orders.sort_by_key(|order| order.sequence);
    orders
}
