//! Who wants to know what changed.
//!
//! A subscriber that is slow never holds up the store: its buffer is bounded, and when it has
//! missed something it is told to read everything again.

use std::fmt::Debug;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Commands with changes that a slow subscriber may be behind before it must resync.
pub const WATCH_BUFFER_EVENTS: usize = 4096;

/// How many commands have changed the state so far; equal on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<C> {
    /// These objects changed, by one command.
    Changed {
        /// The state's revision after the changes.
        revision: Revision,
        /// What changed.
        changes: Arc<[C]>,
    },
    /// Something was missed, or the whole state was replaced: read again what you watch.
    Resync,
}

/// Sends changes to all subscribers.
#[derive(Debug)]
pub(crate) struct Hub<C>(broadcast::Sender<Event<C>>);

impl<C: Clone + Debug + Send + 'static> Hub<C> {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(WATCH_BUFFER_EVENTS))
    }

    /// Subscribers that there are not are no error.
    pub(crate) fn publish(&self, event: Event<C>) {
        drop(self.0.send(event));
    }

    pub(crate) fn subscribe(&self) -> Subscription<C> {
        Subscription(self.0.subscribe())
    }
}

/// A stream of changes, from the moment of the subscription on.
///
/// Subscribe first and read then: what you read contains at least everything before the first
/// event, and perhaps some of the first events' changes already.
#[derive(Debug)]
pub struct Subscription<C>(broadcast::Receiver<Event<C>>);

impl<C: Clone> Subscription<C> {
    /// The next event, or `None` when the store has shut down. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event<C>> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(_)) => {
                // Whatever is still buffered will be covered by the resync.
                self.0 = self.0.resubscribe();
                Some(Event::Resync)
            }
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(at: u64) -> Event<u64> {
        Event::Changed {
            revision: Revision(at),
            changes: Arc::from([at]),
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_told_to_resync_and_goes_on() {
        let hub = Hub::new();
        let mut slow = hub.subscribe();
        for at in 0..=WATCH_BUFFER_EVENTS as u64 {
            hub.publish(changed(at));
        }
        assert_eq!(slow.next().await, Some(Event::Resync));
        hub.publish(changed(9999));
        assert_eq!(slow.next().await, Some(changed(9999)));
        drop(hub);
        assert_eq!(slow.next().await, None);
    }

    #[tokio::test]
    async fn events_come_in_order() {
        let hub = Hub::new();
        let mut subscription = hub.subscribe();
        (1..5).for_each(|at| hub.publish(changed(at)));
        for at in 1..5 {
            assert_eq!(subscription.next().await, Some(changed(at)));
        }
    }
}
