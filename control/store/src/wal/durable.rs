//! How far the log is on disk, for the state that must not get ahead of it.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The entries below an index are synced.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    next: AtomicU64,
    changed: Notify,
}

impl Durable {
    /// All entries below `next` are on disk, and none from it on is said to be.
    pub(super) fn set(&self, next: u64) {
        self.next.store(next, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(super) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Returns when entry `index` is on disk.
    pub(crate) async fn wait(&self, index: u64) {
        loop {
            let changed = self.changed.notified();
            if index < self.next() {
                return;
            }
            changed.await;
        }
    }
}
