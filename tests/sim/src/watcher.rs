//! Watches one node as long as it runs, and goes on at another moment, or on another node, where
//! some watch had come to.

use std::collections::BTreeMap;

use control_store::{ChangeEvent, Revision, Store, Subscription};

use crate::invariants::watch;
use crate::machine::{Changed, Registers, revision};
use crate::node::{Shared, World};
use crate::random::Random;
use crate::registers::RegisterWork;

/// What watchers were told, over all nodes.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How far the watch of a node had come, by node.
    pub(crate) last: BTreeMap<u64, u64>,
    pub(crate) events: u64,
    /// Watches that went on where one had been.
    pub(crate) resumed: u64,
}

pub(crate) async fn run(world: Shared<RegisterWork>, id: u64, store: Store<Registers>) {
    let (seed, now) = (world.borrow().plan.seed, world.borrow().now_ms);
    let mut random = Random::new(seed ^ now, &format!("watcher {id}"));
    loop {
        let (mut last, mut events) = begin(&mut world.borrow_mut(), &mut random, &store);
        // Now and then a watch ends and begins again.
        let until = random.within(1..40);
        for _ in 0..until {
            let Some(event) = events.next().await else {
                return;
            };
            let mut world = world.borrow_mut();
            let ChangeEvent::Changed { revision, changes } = event else {
                // The state was replaced: what is watched must be read again.
                world.work.seen.last.remove(&id);
                break;
            };
            world.work.seen.events += 1;
            if let Err(reason) = watch::check(last, revision.0, &changes) {
                world.fail(format!("watch of node {id}: {reason}"));
            }
            last = revision.0;
            world.work.seen.last.insert(id, last);
        }
    }
}

/// Goes on after what some watch was told last, or else after what the node has now.
fn begin(
    world: &mut World<RegisterWork>,
    random: &mut Random,
    store: &Store<Registers>,
) -> (u64, Subscription<Changed>) {
    let places: Vec<u64> = world.work.seen.last.values().copied().collect();
    if let Some(place) = random.pick(&places).copied()
        && let Ok(events) = store.watch_from(Revision(place))
    {
        world.work.seen.resumed += 1;
        return (place, events);
    }
    let events = store.watch();
    // Nothing else runs between the two: what is read is what the watch begins after.
    (store.read_local(revision).unwrap_or_default(), events)
}
