//! The simulated hosts: the nodes, and one where all clients live.

use std::rc::Rc;
use std::time::Duration;

use turmoil::{Builder, Sim};

use crate::clients;
use crate::nemesis::MEND;
use crate::net;
use crate::node::{self, Shared};
use crate::operator;
use crate::plan::NODES_MAX;
use crate::registers::RegisterWork;
use crate::workload::Workload;

/// Segments that a connection holds, and connections that may wait.
const TCP_SEGMENTS_MAX: usize = 4096;
/// Far beyond the longest run.
const RUN_MAX: Duration = Duration::from_secs(24 * 3600);

/// All hosts, and the operator who forms the cluster.
pub(crate) fn build<W: Workload>(world: &Shared<W>) -> Sim<'static> {
    let (seed, latency_ms_max, tick_ms) = {
        let plan = &world.borrow().plan;
        (plan.seed, plan.latency_ms_max, plan.tick_ms)
    };
    let mut sim = Builder::new()
        .rng_seed(seed)
        .enable_random_order()
        .tick_duration(Duration::from_millis(tick_ms))
        .simulation_duration(RUN_MAX)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(latency_ms_max))
        .tcp_capacity(TCP_SEGMENTS_MAX)
        .fail_rate(0.0)
        .repair_rate(MEND)
        .build();
    for id in 1..=NODES_MAX {
        let world = Rc::clone(world);
        sim.host(net::host(id), move || node::run(world.clone(), id));
    }
    let formed = Rc::clone(world);
    sim.client("operator", async move {
        operator::form(formed).await;
        Ok(())
    });
    sim
}

/// From now on there is something to do.
pub(crate) fn start_clients(sim: &mut Sim<'_>, world: &Shared<RegisterWork>) {
    let (clients, members) = {
        let plan = &world.borrow().plan;
        (plan.clients, plan.faults.members)
    };
    let shared = Rc::clone(world);
    sim.client("clients", async move {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 1..=clients {
            tasks.spawn_local(clients::run(shared.clone(), number));
        }
        if members {
            tasks.spawn_local(operator::operate(shared));
        }
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        Ok(())
    });
}
