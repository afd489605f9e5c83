//! The watch: a stream of the changes of the state, for any number of subscribers.
//!
//! The newest changes are kept once, in memory, for all subscribers; a subscriber is a position in
//! that history. So many subscribers cost the store nothing, a slow one never delays it, and one
//! that was away resumes at its position as long as the history reaches back that far. The history
//! is empty after the start of the node and after the whole state is replaced.
//!
//! Invariant: a subscriber gets every command after its position exactly once, whole and in order,
//! or is told that it missed some.

mod changes;
mod history;
mod subscription;

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use history::History;

pub use changes::Changes;
pub use subscription::{ChangeEvent, Subscription};

/// Most changes that the history keeps. Beyond it the oldest commands are dropped, and subscribers
/// that are further behind must resync.
pub const WATCH_HISTORY_CHANGES: usize = 16_384;

/// Number of commands that have changed the state so far; equal on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// The history does not reach back to the revision from which a subscriber wants to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes after revision {} are not kept any more, only those after {}", from.0, oldest.0)]
pub struct Compacted {
    /// The revision from which it wants to resume.
    pub from: Revision,
    /// The oldest revision from which a subscriber can resume.
    pub oldest: Revision,
}

/// Keeps the history and wakes the subscribers.
#[derive(Debug)]
pub(crate) struct Hub<C> {
    history: Arc<RwLock<History<C>>>,
    wake: watch::Sender<()>,
}

impl<C> Hub<C> {
    /// A history that begins after `revision` and holds about `held_max` changes.
    pub(crate) fn new(revision: Revision, held_max: usize) -> Self {
        let history = History::new(revision, held_max);
        Self {
            history: Arc::new(RwLock::new(history)),
            wake: watch::Sender::new(()),
        }
    }

    /// Adds the changes of commands, in their order.
    pub(crate) fn publish(&self, commands: impl IntoIterator<Item = (Revision, Vec<C>)>) {
        // All commands under one lock and with one wake: every subscriber is woken each time.
        let mut history = self.history.write();
        for (revision, changes) in commands {
            history.push(revision, Arc::new(Changes::new(changes)));
        }
        drop(history);
        self.wake.send_replace(());
    }

    /// Clears the history, because the whole state was replaced.
    pub(crate) fn replaced(&self, revision: Revision) {
        self.history.write().replace(revision);
        self.wake.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> Subscription<C> {
        let history = self.history.read();
        self.subscription(history.newest, history.epoch)
    }

    pub(crate) fn subscribe_after(&self, from: Revision) -> Result<Subscription<C>, Compacted> {
        let history = self.history.read();
        // A `from` beyond the newest revision is right on a node that lags behind the one that was
        // read: the subscriber then skips the changes that it has seen.
        if from < history.floor {
            let oldest = history.floor;
            return Err(Compacted { from, oldest });
        }
        #[cfg(feature = "sim")]
        let from = if crate::sim::has(crate::sim::Bug::WatchGapOnResume) {
            Revision(from.0 + 1)
        } else {
            from
        };
        Ok(self.subscription(from, history.epoch))
    }

    fn subscription(&self, place: Revision, epoch: u64) -> Subscription<C> {
        Subscription {
            history: Arc::clone(&self.history),
            wake: self.wake.subscribe(),
            place,
            epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD_MAX: usize = 8;

    fn hub() -> Hub<u64> {
        Hub::new(Revision(0), HELD_MAX)
    }

    fn put(hub: &Hub<u64>, at: u64) {
        hub.publish([(Revision(at), vec![at])]);
    }

    fn changed(at: u64) -> ChangeEvent<u64> {
        ChangeEvent::Changed {
            revision: Revision(at),
            changes: Arc::new(Changes::new(vec![at])),
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_told_to_resync_and_goes_on() {
        let hub = hub();
        let mut slow = hub.subscribe();
        (1..=HELD_MAX as u64 + 1).for_each(|at| put(&hub, at));
        assert_eq!(slow.next().await, Some(ChangeEvent::Resync));
        put(&hub, 9999);
        assert_eq!(slow.next().await, Some(changed(9999)));
        drop(hub);
        assert_eq!(slow.next().await, None);
    }

    #[tokio::test]
    async fn events_come_once_and_in_order_from_any_place() {
        let hub = hub();
        let mut live = hub.subscribe();
        (1..=HELD_MAX as u64).for_each(|at| put(&hub, at));
        for from in 0..=HELD_MAX as u64 {
            let mut resumed = hub.subscribe_after(Revision(from)).unwrap();
            for at in from + 1..=HELD_MAX as u64 {
                assert_eq!(resumed.next_now(), Some(changed(at)));
            }
            assert_eq!(resumed.next_now(), None);
        }
        for at in 1..=HELD_MAX as u64 {
            assert_eq!(live.next().await, Some(changed(at)));
        }
        assert_eq!((live.behind(), live.place()), (0, Revision(8)));
    }

    #[tokio::test]
    async fn the_history_has_an_end() {
        let hub = hub();
        (1..=20).for_each(|at| put(&hub, at));
        let oldest = Revision(20 - HELD_MAX as u64);
        let from = Revision(oldest.0 - 1);
        let refused = hub.subscribe_after(from).unwrap_err();
        assert_eq!(refused, Compacted { from, oldest });
        assert_eq!(
            hub.subscribe_after(oldest).unwrap().next_now(),
            Some(changed(oldest.0 + 1))
        );
        // One command may be larger than the history.
        hub.publish([(Revision(21), vec![7; HELD_MAX * 2])]);
        assert!(
            hub.subscribe_after(Revision(20))
                .unwrap()
                .next_now()
                .is_some()
        );
    }

    #[tokio::test]
    async fn another_state_begins_another_history() {
        let hub = hub();
        put(&hub, 1);
        let mut live = hub.subscribe();
        hub.replaced(Revision(50));
        assert_eq!(live.next().await, Some(ChangeEvent::Resync));
        assert!(hub.subscribe_after(Revision(1)).is_err());
        put(&hub, 51);
        assert_eq!(live.next().await, Some(changed(51)));
    }

    #[test]
    fn what_is_derived_is_made_once() {
        let changes = Changes::new(vec![1, 2, 3]);
        let made = std::cell::Cell::new(0);
        for _ in 0..3 {
            let sum = changes.derived(|list| {
                made.set(made.get() + 1);
                list.iter().sum::<u64>()
            });
            assert_eq!(*sum, 6);
        }
        assert_eq!(made.get(), 1);
        assert_eq!(*changes.derived(|list| list.len().to_string()), "3");
    }
}
