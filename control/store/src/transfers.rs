//! Counters of snapshot transfers since the start of the node.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of snapshot files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotBytes {
    /// Sent to other members.
    pub sent: u64,
    /// Not sent, because the member had them from an earlier attempt.
    pub spared: u64,
    /// Received from a leader.
    pub received: u64,
    /// Not received again, because this node had them from an earlier attempt.
    pub kept: u64,
}

/// Counters of [`SnapshotBytes`], and of the transfers to this node in progress.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    sent: AtomicU64,
    spared: AtomicU64,
    received: AtomicU64,
    kept: AtomicU64,
    incoming: AtomicU64,
}

/// Counts as a transfer to this node until it is dropped.
#[derive(Debug)]
pub(crate) struct Incoming<'a>(&'a Transfers);

impl Transfers {
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn spared(&self, bytes: u64) {
        self.spared.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn kept(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn begin_incoming(&self) -> Incoming<'_> {
        self.incoming.fetch_add(1, Ordering::Relaxed);
        Incoming(self)
    }

    /// `true` if a snapshot is being received or installed.
    #[cfg(feature = "sim")]
    pub(crate) fn is_receiving(&self) -> bool {
        self.incoming.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn bytes(&self) -> SnapshotBytes {
        SnapshotBytes {
            sent: self.sent.load(Ordering::Relaxed),
            spared: self.spared.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            kept: self.kept.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        self.0.incoming.fetch_sub(1, Ordering::Relaxed);
    }
}
