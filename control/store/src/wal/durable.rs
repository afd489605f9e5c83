//! The durable end of the log, which the applied state must not overtake.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The index below which all entries are synced.
#[derive(Debug, Default)]
pub(crate) struct DurableIndex {
    next: AtomicU64,
    changed: Notify,
}

impl DurableIndex {
    /// Sets the durable end: all entries below `next` are synced, and the entries from `next` on
    /// count as not synced. It also goes down, when the log is truncated.
    pub(super) fn set(&self, next: u64) {
        // The value before the wake: a woken applier compares it.
        self.next.store(next, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns the first index that does not count as synced.
    pub(super) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Waits until entry `index` is synced.
    pub(crate) async fn wait(&self, index: u64) {
        loop {
            // Registered before the check: a sync between check and registration would otherwise
            // wake nobody, and the applier would stop until the next one.
            let changed = self.changed.notified();
            if index < self.next() {
                return;
            }
            changed.await;
        }
    }
}
