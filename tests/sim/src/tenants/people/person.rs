//! Somebody who calls control and reads what it says.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use control_state::{Op, Reply, StateError, Tables};
use proto_types::Timestamp;

use crate::clock;
use crate::node::Shared;
use crate::random::Random;
use crate::tenants::calls::{Call, deliver};
use crate::tenants::ids::Fresh;
use crate::tenants::work::TenantWork;

/// Pause between two looks of somebody who waits for something.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A person.
pub(crate) struct Person {
    pub(crate) world: Shared<TenantWork>,
    pub(crate) random: Random,
    pub(crate) fresh: Fresh,
    name: String,
}

impl Person {
    /// A person with a name of its own; the ids that it makes are those of maker `number`.
    pub(crate) fn new(world: Shared<TenantWork>, name: String, number: u64) -> Self {
        let seed = world.borrow().plan.seed;
        Self {
            random: Random::new(seed, &name),
            fresh: Fresh::of(number),
            world,
            name,
        }
    }

    /// Calls control. `None` means that the run ended before there was an answer.
    pub(crate) async fn call(&mut self, op: impl Into<Op>) -> Option<Result<Reply, StateError>> {
        let call = Call::of(&self.name, op);
        deliver(&self.world, &mut self.random, &call).await
    }

    /// The state as it was a moment ago.
    pub(crate) fn view(&self) -> Option<Arc<Tables>> {
        self.world.borrow().work.view.clone()
    }

    /// Lets time pass. `false` means that tenants and owners are to stop.
    pub(crate) async fn pause(&mut self, ms: Range<u64>) -> bool {
        let ms = self.random.within(ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let world = self.world.borrow();
        !world.is_calm && !world.work.is_finale
    }

    /// Waits until the site is set up. `false` means that the run ended before.
    pub(crate) async fn wait_for_set_up(&self) -> bool {
        loop {
            {
                let world = self.world.borrow();
                if world.is_calm {
                    return false;
                }
                if world.work.is_set_up {
                    return true;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) fn is_set_up(&self) -> bool {
        self.world.borrow().work.is_set_up
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.world.borrow().work.is_draining
    }

    /// The right time.
    pub(crate) fn now(&self) -> Timestamp {
        clock::at(self.world.borrow().now_ms)
    }

    /// Something happened that must not.
    pub(crate) fn complain(&self, reason: &str) {
        let name = &self.name;
        self.world.borrow_mut().fail(format!("{name}: {reason}"));
    }
}

/// Waits until something is so, or the run ends.
pub(crate) async fn wait_until(world: &Shared<TenantWork>, is_so: impl Fn(&Tables) -> bool) {
    loop {
        let (view, is_calm) = {
            let world = world.borrow();
            (world.work.view.clone(), world.is_calm)
        };
        if is_calm || view.is_some_and(|view| is_so(view.as_ref())) {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
