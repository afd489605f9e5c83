//! Expiry of orders to BMCs that no agent answered in time.

use proto_errors::Error;
use proto_types::{OrderId, Timestamp};

use crate::cluster::command::Tick;
use crate::cluster::read::restored;
use crate::machine::apply::liveliness::is_observed;
use crate::machine::apply::orders;
use crate::machine::entity::{BmcOrder, Machine, OrderPurpose, OrderState};
use crate::machine::read::is_left_alone;
use crate::tables::{Tables, Tx};

pub(crate) fn expire_orders(tx: &mut Tx<'_>, op: &Tick) -> Result<(), Error> {
    let late: Vec<_> = late(tx.tables(), op, tx.now).collect();
    for id in late {
        // The expiry of an earlier order may have cancelled this one: a retry cancels all orders of
        // its step.
        let order = tx
            .get::<BmcOrder>(&id)
            .filter(|order| order.state == OrderState::Open);
        let Some(order) = order.map(|order| BmcOrder::clone(order)) else {
            continue;
        };
        orders::expire(tx, &order)?;
    }
    Ok(())
}

/// Open orders past their deadline. Orders of the life cycle in a partition that is cut off wait:
/// silence there says nothing about the BMC, and three expiries would hold every machine of the
/// partition. Orders of users expire everywhere.
pub(crate) fn late<'a>(
    tables: &'a Tables,
    op: &'a Tick,
    now: Timestamp,
) -> impl Iterator<Item = OrderId> + 'a {
    let is_held = restored(tables).is_some();
    let is_judged = move |order: &BmcOrder| {
        order.purpose != OrderPurpose::Life || (!is_held && is_observed(Some(&order.partition), op))
    };
    let open = tables.index().open_orders.values().flatten();
    open.filter_map(|id| tables.get::<BmcOrder>(id))
        .filter(move |order| order.state == OrderState::Open && now >= order.deadline)
        .filter(move |order| is_judged(order) && !is_spared(tables, order))
        .map(|order| order.id)
}

/// `true` for a life-cycle order of a locked machine: it waits for the operator.
fn is_spared(tables: &Tables, order: &BmcOrder) -> bool {
    let machine = tables.get::<Machine>(&order.machine);
    let is_locked = machine.is_some_and(|machine| is_left_alone(machine));
    is_locked && order.purpose == OrderPurpose::Life
}
