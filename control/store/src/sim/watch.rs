//! A watched value for openraft that wakes its waiters in the order in which they came. Tokio's own
//! wakes them in random order, and a run could not be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openraft::async_runtime::watch::{RecvError, SendError, Watch, WatchReceiver, WatchSender};
use openraft::{OptionalSend, OptionalSync};
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::Notify;

use super::fair_channel::{FairReceiver, FairSender, WatchCell};

/// The kind of watch channel.
#[derive(Debug)]
pub(crate) struct FairWatch;

/// The value, locked.
#[derive(Debug)]
pub(crate) struct FairRef<'a, T>(RwLockReadGuard<'a, T>);

impl<'a, T> FairRef<'a, T> {
    pub(super) fn new(guard: RwLockReadGuard<'a, T>) -> Self {
        Self(guard)
    }
}

impl<T> std::ops::Deref for FairRef<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl Watch for FairWatch {
    type Sender<T: OptionalSend + OptionalSync> = FairSender<T>;
    type Receiver<T: OptionalSend + OptionalSync> = FairReceiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = FairRef<'a, T>;

    fn channel<T: OptionalSend + OptionalSync>(init: T) -> (FairSender<T>, FairReceiver<T>) {
        let channel = Arc::new(WatchCell {
            value: RwLock::new(init),
            version: AtomicUsize::new(0),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            changed: Notify::new(),
        });
        (FairSender(channel.clone()), FairReceiver::new(channel, 0))
    }
}

impl<T: OptionalSend + OptionalSync> WatchSender<FairWatch, T> for FairSender<T> {
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.0.receivers.load(Ordering::SeqCst) == 0 {
            return Err(SendError(value));
        }
        *self.0.value.write() = value;
        self.0.wake();
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        let mut value = self.0.value.write();
        let is_modified = modify(&mut value);
        drop(value);
        if is_modified {
            self.0.wake();
        }
        is_modified
    }

    fn borrow_watched(&self) -> FairRef<'_, T> {
        self.0.look()
    }

    fn subscribe(&self) -> FairReceiver<T> {
        FairReceiver::new(self.0.clone(), self.0.version.load(Ordering::SeqCst))
    }
}

impl<T: OptionalSend + OptionalSync> WatchReceiver<FairWatch, T> for FairReceiver<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        loop {
            // Made before the version is read: `notify_waiters` wakes every waiter that exists,
            // also one that was not polled yet.
            let changed = self.channel.changed.notified();
            let version = self.channel.version.load(Ordering::SeqCst);
            if version != self.seen {
                self.seen = version;
                return Ok(());
            }
            if self.channel.senders.load(Ordering::SeqCst) == 0 {
                return Err(RecvError(()));
            }
            changed.await;
        }
    }

    fn borrow_watched(&self) -> FairRef<'_, T> {
        self.channel.look()
    }

    fn borrow_and_update(&mut self) -> FairRef<'_, T> {
        // The version before the value: a change in between counts as unseen and is not missed.
        self.seen = self.channel.version.load(Ordering::SeqCst);
        self.channel.look()
    }
}
