//! A subscriber's position in the history.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::history::History;
use super::{Changes, Revision};

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeEvent<C> {
    /// One command changed these objects.
    Changed {
        /// The state's revision after the changes.
        revision: Revision,
        /// The changes.
        changes: Arc<Changes<C>>,
    },
    /// Changes were missed, or the whole state was replaced: read again everything that is watched.
    Resync,
}

/// A stream of changes.
///
/// Subscribe first and read then: the read contains at least everything before the first event, and
/// perhaps changes of the first events already.
#[derive(Debug)]
pub struct Subscription<C> {
    pub(super) history: Arc<RwLock<History<C>>>,
    pub(super) wake: watch::Receiver<()>,
    /// Every change up to this revision was returned.
    pub(super) place: Revision,
    pub(super) epoch: u64,
}

impl<C> Subscription<C> {
    /// The next event, or `None` when the store has shut down. Cancel-safe.
    pub async fn next(&mut self) -> Option<ChangeEvent<C>> {
        loop {
            // Before the history is read: a change that is published meanwhile then wakes this
            // task. In the other order it could be missed until the next one.
            self.wake.mark_unchanged();
            if let Some(event) = self.next_now() {
                return Some(event);
            }
            if self.wake.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The next event, if there is one already.
    pub fn next_now(&mut self) -> Option<ChangeEvent<C>> {
        let history = self.history.read();
        if self.epoch != history.epoch || self.place < history.floor {
            // The subscriber reads the state after this event, and that read contains everything up
            // to the newest revision.
            (self.epoch, self.place) = (history.epoch, history.newest);
            return Some(ChangeEvent::Resync);
        }
        let (revision, changes) = history.after(self.place)?;
        self.place = *revision;
        Some(ChangeEvent::Changed {
            revision: *revision,
            changes: Arc::clone(changes),
        })
    }

    /// Skips the changes that a read at `revision` contained.
    pub fn skip_to(&mut self, revision: Revision) {
        self.place = self.place.max(revision);
    }

    /// The revision up to which every change was returned or skipped.
    pub fn place(&self) -> Revision {
        self.place
    }

    /// Number of commands that the subscriber is behind.
    pub fn behind(&self) -> u64 {
        let history = self.history.read();
        history.newest.0.saturating_sub(self.place.0)
    }
}
