//! The BMC agent of the partition: it carries out open orders, those of one machine in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control_state::{BmcOrder, BmcOrderDone, Tables, life};
use proto_types::OrderId;
use tests_support::objects::{PARTITION, text};

use crate::node::Shared;
use crate::random::Random;
use crate::tenants::calls::{Call, deliver};
use crate::tenants::ids;
use crate::tenants::work::TenantWork;

/// Orders of a hundred that a BMC refuses.
const REFUSED_PERCENT: u64 = 3;
/// Time that a BMC takes for an order, milliseconds.
const WORK_MS: std::ops::Range<u64> = 200..5_000;

/// The agent.
struct BmcAgent {
    world: Shared<TenantWork>,
    random: Random,
    /// Virtual time at which each open order is carried out, milliseconds. `None` means that it was.
    orders: BTreeMap<OrderId, Option<u64>>,
}

/// Carries out orders until the run ends.
pub(crate) async fn run(world: Shared<TenantWork>) {
    let random = Random::new(world.borrow().plan.seed, "bmc");
    let mut agent = BmcAgent {
        world,
        random,
        orders: BTreeMap::new(),
    };
    loop {
        let pause = agent.random.within(300..1_000);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let (view, is_calm) = {
            let world = agent.world.borrow();
            (world.work.view.clone(), world.is_calm)
        };
        if is_calm {
            return;
        }
        if let Some(view) = view {
            agent.obey(&view);
        }
    }
}

impl BmcAgent {
    fn obey(&mut self, tables: &Tables) {
        let open = life::bmc_desired(tables, &text(PARTITION));
        let ids: BTreeSet<OrderId> = open.iter().map(|order| order.id).collect();
        self.orders.retain(|id, _| ids.contains(id));
        let now_ms = self.world.borrow().now_ms;
        let mut busy = BTreeSet::new();
        for order in &open {
            // The next order of a machine waits until control has taken note of the end of this one.
            if !busy.insert(order.machine) {
                continue;
            }
            let begun = now_ms + self.random.within(WORK_MS);
            let due = *self.orders.entry(order.id).or_insert(Some(begun));
            if due.is_some_and(|due| now_ms >= due) {
                self.orders.insert(order.id, None);
                self.carry_out(order);
            }
        }
    }

    /// Does what an order says, and reports it as long as it takes.
    fn carry_out(&mut self, order: &BmcOrder) {
        let is_refused = self.random.chance(REFUSED_PERCENT);
        if !is_refused && let Some(number) = ids::number_of(order.machine) {
            let mut world = self.world.borrow_mut();
            if let Some(chassis) = world.work.chassis.get_mut(&number) {
                chassis.obey(order.action);
            }
            let (machine, action) = (order.machine, order.action);
            world.log(format_args!("the BMC of {machine}: {action:?}"));
        }
        let done = BmcOrderDone {
            id: order.id,
            partition: order.partition.clone(),
            error: is_refused.then(|| "busy".to_owned()),
            power_state: None,
            nonce: None,
        };
        let call = Call::of("bmc", done);
        let world = self.world.clone();
        let mut random = Random::new(self.random.next(), "bmc report");
        tokio::task::spawn_local(async move {
            drop(deliver(&world, &mut random, &call).await);
        });
    }
}
