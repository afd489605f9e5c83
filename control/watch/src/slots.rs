//! Slots of open watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of open watches, in all and by user.
#[derive(Debug, Default)]
pub(super) struct OpenWatches {
    pub(super) all: usize,
    pub(super) users: BTreeMap<String, usize>,
}

/// A slot among the open watches, released on drop.
#[derive(Debug)]
pub(super) struct WatchSlot {
    pub(super) open: Arc<Mutex<OpenWatches>>,
    pub(super) user: String,
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(own) = open.users.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                open.users.remove(&self.user);
            }
        }
    }
}
