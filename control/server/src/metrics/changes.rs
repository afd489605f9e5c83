//! Counters of changes of the state: ends of orders, allocations, releases.

use control_state::{BmcOrder, Change, Machine, OrderState, Record};
use control_store::{ChangeEvent, Subscription};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

/// Labels of the counter of ended orders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OrderOutcome {
    action: &'static str,
    outcome: &'static str,
}

/// Counters since the start of this node. Each node counts the changes that it applies.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeCounts {
    orders: Family<OrderOutcome, Counter>,
    allocated: Counter,
    freed: Counter,
    missed: Counter,
}

impl ChangeCounts {
    /// Registers the counters.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "metalmesh_bmc_orders_ended",
            "Orders to BMCs that ended, by what was ordered and how that ended",
            self.orders.clone(),
        );
        registry.register(
            "metalmesh_machine_allocations",
            "Machines that were given to a project",
            self.allocated.clone(),
        );
        registry.register(
            "metalmesh_machine_releases",
            "Machines that came back from a project, its ports and addresses included",
            self.freed.clone(),
        );
        registry.register(
            "metalmesh_state_resyncs",
            "Times at which this node took over a whole state, so that the counters of orders and \
             allocations have a gap",
            self.missed.clone(),
        );
    }

    /// Counts the events until `stop`.
    pub(super) async fn follow(self, mut events: Subscription<Change>, stop: CancellationToken) {
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                None => return,
                Some(ChangeEvent::Resync) => drop(self.missed.inc()),
                Some(ChangeEvent::Changed { changes, .. }) => {
                    changes.iter().for_each(|change| self.count(change));
                }
            }
        }
    }

    fn count(&self, change: &Change) {
        match (&change.before, &change.record) {
            (before, Some(Record::BmcOrder(now))) => {
                let was_open = match before {
                    Some(Record::BmcOrder(before)) => before.state == OrderState::Open,
                    _ => true,
                };
                if let Some(outcome) = ended(now).filter(|_| was_open) {
                    self.orders.get_or_create(&outcome).inc();
                }
            }
            (before, Some(Record::Machine(now))) => {
                let had = match before {
                    Some(Record::Machine(before)) => has(before),
                    _ => None,
                };
                let has = has(now);
                if had == has {
                    return;
                }
                if had.is_some() {
                    self.freed.inc();
                }
                if has.is_some() {
                    self.allocated.inc();
                }
            }
            _ => {}
        }
    }
}

fn has(machine: &Machine) -> Option<proto_types::AllocationId> {
    machine.allocation.as_ref().map(|allocation| allocation.id)
}

fn ended(order: &BmcOrder) -> Option<OrderOutcome> {
    let outcome = match order.state {
        OrderState::Open => return None,
        OrderState::Done => "done",
        OrderState::Failed => "failed",
        OrderState::Expired => "expired",
        OrderState::Cancelled => "cancelled",
    };
    Some(OrderOutcome {
        action: order.action.as_str(),
        outcome,
    })
}
