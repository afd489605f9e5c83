//! A watched value as openraft wants it, that wakes those who wait in the order in which they
//! came. Tokio's own spreads them at random, and a run would not repeat itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openraft::async_runtime::watch::{RecvError, SendError, Watch, WatchReceiver, WatchSender};
use openraft::{OptionalSend, OptionalSync};
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::Notify;

/// The kind of channel.
#[derive(Debug)]
pub(crate) struct FairWatch;

#[derive(Debug)]
struct WatchCell<T> {
    value: RwLock<T>,
    version: AtomicUsize,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    changed: Notify,
}

/// Changes the value.
#[derive(Debug)]
pub(crate) struct FairSender<T>(Arc<WatchCell<T>>);

/// Sees the value.
#[derive(Debug)]
pub(crate) struct FairReceiver<T> {
    channel: Arc<WatchCell<T>>,
    seen: usize,
}

/// The value, locked.
#[derive(Debug)]
pub(crate) struct FairRef<'a, T>(RwLockReadGuard<'a, T>);

impl<T> std::ops::Deref for FairRef<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> WatchCell<T> {
    fn look(&self) -> FairRef<'_, T> {
        FairRef(self.value.read())
    }

    fn tell(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

impl<T> FairReceiver<T> {
    fn new(channel: Arc<WatchCell<T>>, seen: usize) -> Self {
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
        self.0.tell();
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        let mut value = self.0.value.write();
        let is_modified = modify(&mut value);
        drop(value);
        if is_modified {
            self.0.tell();
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
        self.seen = self.channel.version.load(Ordering::SeqCst);
        self.channel.look()
    }
}
