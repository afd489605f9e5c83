//! Orders to BMCs.

use std::sync::Arc;

use proto_types::MachineId;

use crate::machine::entity::{BmcOrder, Machine};
use crate::pool::entity::PoolHost;
use crate::tables::Tables;

/// Orders of a machine that are remembered, oldest first.
pub fn machine_orders(tables: &Tables, machine: MachineId) -> impl Iterator<Item = &Arc<BmcOrder>> {
    let orders = tables.index().machine_orders.get(&machine);
    orders
        .into_iter()
        .flat_map(|by_age| by_age.values())
        .filter_map(|id| tables.get::<BmcOrder>(id))
}

/// Number of a machine's last binding to a claim. 0 for one that was never bound.
pub(crate) fn binding_epoch(tables: &Tables, machine: &Machine) -> u64 {
    let host = tables.get::<PoolHost>(&machine.id);
    host.map_or(machine.bindings, |host| host.epoch)
}

/// `true` if the order is of an earlier epoch of its pool host: the machine is bound to another claim
/// by now.
pub(crate) fn is_of_earlier_binding(tables: &Tables, order: &BmcOrder) -> bool {
    let host = tables.get::<PoolHost>(&order.machine);
    host.is_some_and(|host| order.epoch < host.epoch)
}
