//! Who wants to know what changed.
//!
//! The newest changes are kept once, in memory, for all; a subscriber is a place in that history.
//! So it costs the store nothing to have many of them, one that is slow never holds it up, and
//! one that was away goes on where it was, as long as the history reaches back that far. It
//! begins anew when the node starts and when the whole state is replaced.
//!
//! Invariants: a subscriber gets every command after its place once, whole and in order, or is
//! told that it missed some.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use tokio::sync::watch;

/// Changes that the history holds; the oldest commands go first.
pub const WATCH_HISTORY_CHANGES: usize = 16_384;

/// How many commands have changed the state so far; equal on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// What a subscriber is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent<C> {
    /// These objects changed, by one command.
    Changed {
        /// The state's revision after the changes.
        revision: Revision,
        /// What changed.
        changes: Arc<Changes<C>>,
    },
    /// Something was missed, or the whole state was replaced: read again what you watch.
    Resync,
}

/// What one command changed, shared by all who are told.
pub struct Changes<C> {
    list: Box<[C]>,
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl<C> Changes<C> {
    fn new(list: Vec<C>) -> Self {
        Self {
            list: list.into(),
            derived: OnceLock::new(),
        }
    }

    /// What `make` makes of the changes; the first caller makes it for all. The place holds one
    /// type: callers with another one make theirs each time.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl Fn(&[C]) -> T) -> Arc<T> {
        let held = self.derived.get_or_init(|| Arc::new(make(&self.list)));
        Arc::clone(held)
            .downcast()
            .unwrap_or_else(|_| Arc::new(make(&self.list)))
    }
}

impl<C> Deref for Changes<C> {
    type Target = [C];
    fn deref(&self) -> &[C] {
        &self.list
    }
}

impl<C: Debug> Debug for Changes<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl<C: PartialEq> PartialEq for Changes<C> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl<C: Eq> Eq for Changes<C> {}

/// The history does not reach back to where a subscriber wants to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes after revision {} are not kept any more, only those after {}", from.0, oldest.0)]
pub struct Compacted {
    /// Where it wants to go on.
    pub from: Revision,
    /// From where one can.
    pub oldest: Revision,
}

/// The newest changes.
#[derive(Debug)]
struct History<C> {
    /// In the order of revisions.
    events: VecDeque<(Revision, Arc<Changes<C>>)>,
    /// Changes in all events.
    held: usize,
    held_max: usize,
    /// All after this one is here.
    floor: Revision,
    newest: Revision,
    /// Counts how often the state was replaced.
    epoch: u64,
}

impl<C> History<C> {
    fn push(&mut self, revision: Revision, changes: Arc<Changes<C>>) {
        self.held += changes.len();
        self.newest = revision;
        self.events.push_back((revision, changes));
        // The newest stays, however large it is: those who are up to date shall have it.
        while self.held > self.held_max && self.events.len() > 1 {
            if let Some((revision, gone)) = self.events.pop_front() {
                self.held -= gone.len();
                self.floor = revision;
            }
        }
    }

    fn replace(&mut self, revision: Revision) {
        self.events.clear();
        self.held = 0;
        self.floor = revision;
        self.newest = revision;
        self.epoch += 1;
    }

    fn after(&self, place: Revision) -> Option<&(Revision, Arc<Changes<C>>)> {
        let next = self.events.partition_point(|(at, _)| *at <= place);
        self.events.get(next)
    }
}

/// Keeps changes and wakes all subscribers.
#[derive(Debug)]
pub(crate) struct Hub<C> {
    history: Arc<RwLock<History<C>>>,
    wake: watch::Sender<()>,
}

impl<C> Hub<C> {
    /// A history that begins after `revision` and holds about `held_max` changes.
    pub(crate) fn new(revision: Revision, held_max: usize) -> Self {
        let history = History {
            events: VecDeque::new(),
            held: 0,
            held_max,
            floor: revision,
            newest: revision,
            epoch: 0,
        };
        Self {
            history: Arc::new(RwLock::new(history)),
            wake: watch::Sender::new(()),
        }
    }

    /// Adds what commands changed, in their order.
    pub(crate) fn publish(&self, commands: impl IntoIterator<Item = (Revision, Vec<C>)>) {
        let mut history = self.history.write();
        for (revision, changes) in commands {
            history.push(revision, Arc::new(Changes::new(changes)));
        }
        drop(history);
        self.wake.send_replace(());
    }

    /// Begins anew: the state is another one.
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

/// A stream of changes.
///
/// Subscribe first and read then: what you read contains at least everything before the first
/// event, and perhaps some of the first events' changes already.
#[derive(Debug)]
pub struct Subscription<C> {
    history: Arc<RwLock<History<C>>>,
    wake: watch::Receiver<()>,
    /// All up to here was told.
    place: Revision,
    epoch: u64,
}

impl<C> Subscription<C> {
    /// The next event, or `None` when the store has shut down. Cancel-safe.
    pub async fn next(&mut self) -> Option<WatchEvent<C>> {
        loop {
            // Before the look, so that what comes during it wakes us.
            self.wake.mark_unchanged();
            if let Some(event) = self.next_now() {
                return Some(event);
            }
            if self.wake.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The next event if it is there already.
    pub fn next_now(&mut self) -> Option<WatchEvent<C>> {
        let history = self.history.read();
        if self.epoch != history.epoch || self.place < history.floor {
            // Whatever is there now will be covered by the reading.
            (self.epoch, self.place) = (history.epoch, history.newest);
            return Some(WatchEvent::Resync);
        }
        let (revision, changes) = history.after(self.place)?;
        self.place = *revision;
        Some(WatchEvent::Changed {
            revision: *revision,
            changes: Arc::clone(changes),
        })
    }

    /// Leaves out what a reading at `revision` has shown already.
    pub fn skip_to(&mut self, revision: Revision) {
        self.place = self.place.max(revision);
    }

    /// All changes up to here were told, or skipped.
    pub fn place(&self) -> Revision {
        self.place
    }

    /// How many commands the subscriber is behind.
    pub fn behind(&self) -> u64 {
        let history = self.history.read();
        history.newest.0.saturating_sub(self.place.0)
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

    fn changed(at: u64) -> WatchEvent<u64> {
        WatchEvent::Changed {
            revision: Revision(at),
            changes: Arc::new(Changes::new(vec![at])),
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_told_to_resync_and_goes_on() {
        let hub = hub();
        let mut slow = hub.subscribe();
        (1..=HELD_MAX as u64 + 1).for_each(|at| put(&hub, at));
        assert_eq!(slow.next().await, Some(WatchEvent::Resync));
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
        assert_eq!(live.next().await, Some(WatchEvent::Resync));
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
