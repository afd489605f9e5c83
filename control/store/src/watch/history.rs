//! The bounded history of changes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Changes, Revision};

/// The newest changes, as a bounded queue.
#[derive(Debug)]
pub(super) struct History<C> {
    /// Sorted by revision.
    events: VecDeque<(Revision, Arc<Changes<C>>)>,
    /// Number of changes in all events.
    held: usize,
    held_max: usize,
    /// The history is complete after this revision.
    pub(super) floor: Revision,
    pub(super) newest: Revision,
    /// Number of times that the state was replaced.
    pub(super) epoch: u64,
}

impl<C> History<C> {
    /// An empty history that begins after `revision`.
    pub(super) fn new(revision: Revision, held_max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            held: 0,
            held_max,
            floor: revision,
            newest: revision,
            epoch: 0,
        }
    }

    pub(super) fn push(&mut self, revision: Revision, changes: Arc<Changes<C>>) {
        self.held += changes.len();
        self.newest = revision;
        self.events.push_back((revision, changes));
        // The newest command stays, however large it is. Otherwise a command larger than the
        // history would force every subscriber to resync, also those that are up to date.
        while self.held > self.held_max && self.events.len() > 1 {
            if let Some((revision, gone)) = self.events.pop_front() {
                self.held -= gone.len();
                self.floor = revision;
            }
        }
    }

    pub(super) fn replace(&mut self, revision: Revision) {
        self.events.clear();
        self.held = 0;
        self.floor = revision;
        self.newest = revision;
        self.epoch += 1;
    }

    pub(super) fn after(&self, place: Revision) -> Option<&(Revision, Arc<Changes<C>>)> {
        let next = self.events.partition_point(|(at, _)| *at <= place);
        self.events.get(next)
    }
}
