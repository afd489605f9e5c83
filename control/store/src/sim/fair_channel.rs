//! The channel of [`FairWatch`](super::FairWatch).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::sync::Notify;

use super::watch::FairRef;

/// The value and its waiters.
#[derive(Debug)]
pub(super) struct WatchCell<T> {
    pub(super) value: RwLock<T>,
    pub(super) version: AtomicUsize,
    pub(super) senders: AtomicUsize,
    pub(super) receivers: AtomicUsize,
    pub(super) changed: Notify,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct FairSender<T>(pub(super) Arc<WatchCell<T>>);

/// A receiving end.
#[derive(Debug)]
pub(crate) struct FairReceiver<T> {
    pub(super) channel: Arc<WatchCell<T>>,
    /// Version that was seen last.
    pub(super) seen: usize,
}

impl<T> WatchCell<T> {
    pub(super) fn look(&self) -> FairRef<'_, T> {
        FairRef::new(self.value.read())
    }

    pub(super) fn wake(&self) {
        // The version before the wake: a woken receiver compares it, and would sleep on otherwise.
        self.version.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

impl<T> FairReceiver<T> {
    pub(super) fn new(channel: Arc<WatchCell<T>>, seen: usize) -> Self {
        channel.receivers.fetch_add(1, Ordering::SeqCst);
        Self { channel, seen }
    }
}

impl<T> Clone for FairSender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::SeqCst);
        Self(self.0.clone())
    }
}

impl<T> Drop for FairSender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T> Clone for FairReceiver<T> {
    fn clone(&self) -> Self {
        Self::new(self.channel.clone(), self.seen)
    }
}

impl<T> Drop for FairReceiver<T> {
    fn drop(&mut self) {
        self.channel.receivers.fetch_sub(1, Ordering::SeqCst);
    }
}
