//! The ticks of the leader, and the copy of the state that agents work by: a copy that is late stands
//! for desired states that are on their way.

use std::time::Duration;

use crate::node::{NodeRequest, Shared};
use crate::operator::ask;
use crate::random::Random;
use crate::tenants::calls::next_node;
use crate::tenants::work::{SiteRequest, TenantWork};

/// Pause between two ticks, as the duties of a leader make it.
const TICK_EVERY: Duration = Duration::from_secs(2);
/// Longest wait for the end of a tick.
const TICK_PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for a copy of the state.
const VIEW_PATIENCE: Duration = Duration::from_secs(4);

/// Has the leader tick, whoever it is.
pub(crate) async fn tick(world: Shared<TenantWork>) {
    loop {
        tokio::time::sleep(TICK_EVERY).await;
        let (leader, heard) = {
            let world = world.borrow();
            if world.is_calm {
                return;
            }
            let there = world.work.chassis.values();
            let there = there.filter(|chassis| chassis.away_until_ms <= world.now_ms);
            let heard: Vec<_> = there
                .filter_map(|chassis| chassis.session.clone())
                .collect();
            (world.leader(), heard)
        };
        if let Some(leader) = leader {
            let done = ask(&world, leader, TICK_PATIENCE, |to| {
                NodeRequest::Work(SiteRequest::Tick(heard, to))
            });
            // A tick that is lost is followed by another.
            done.await;
        }
    }
}

/// Keeps the copy of the state for agents: never an older one than before.
pub(crate) async fn watch(world: Shared<TenantWork>) {
    let seed = world.borrow().plan.seed;
    let mut random = Random::new(seed, "view");
    loop {
        let pause = random.within(300..1_200);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if world.borrow().is_calm {
            return;
        }
        let node = next_node(&world, &mut random);
        let copy = ask(&world, node, VIEW_PATIENCE, |to| {
            NodeRequest::Work(SiteRequest::View(to))
        });
        if let Some(Ok(copy)) = copy.await {
            let mut world = world.borrow_mut();
            let known = world.work.view.as_ref();
            if known.is_none_or(|known| known.revision() < copy.revision()) {
                world.work.view = Some(copy);
            }
        }
    }
}
