//! How long syncs of the log took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the histogram, microseconds; slower ones count in one more bucket.
pub const SYNC_BOUNDS_US: [u64; 10] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_000_000,
];
/// Syncs over which quantiles are taken: the last ones.
const RECENT_MAX: usize = 1024;

/// Syncs of the log since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncTimes {
    /// How many took at most so long as the bound of [`SYNC_BOUNDS_US`] at this place, and longer
    /// than the one before; the last count is of those above all bounds.
    pub counts: [u64; SYNC_BOUNDS_US.len() + 1],
    /// All together, microseconds.
    pub sum_us: u64,
    /// Half of the last 1024 syncs took at most so long, microseconds; `None` before the first.
    pub p50_us: Option<u64>,
    /// All but the slowest hundredth of the last 1024 syncs took at most so long, microseconds.
    pub p99_us: Option<u64>,
}

/// Counts them; one thread writes, everybody reads.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    counts: [AtomicU64; SYNC_BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// A ring.
    us: Vec<u64>,
    next: usize,
}

impl Syncs {
    pub(crate) fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = SYNC_BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        let mut recent = self.recent.lock();
        let place = recent.next;
        match recent.us.get_mut(place) {
            Some(old) => *old = us,
            None => recent.us.push(us),
        }
        recent.next = (place + 1) % RECENT_MAX;
    }

    pub(crate) fn times(&self) -> SyncTimes {
        let recent = self.recent.lock();
        let mut sorted = recent.us.clone();
        drop(recent);
        sorted.sort_unstable();
        let at = |percent: usize| {
            let last = sorted.len().checked_sub(1)?;
            sorted.get(last * percent / 100).copied()
        };
        let mut counts = [0; SYNC_BOUNDS_US.len() + 1];
        for (count, counted) in counts.iter_mut().zip(&self.counts) {
            *count = counted.load(Ordering::Relaxed);
        }
        SyncTimes {
            counts,
            sum_us: self.sum_us.load(Ordering::Relaxed),
            p50_us: at(50),
            p99_us: at(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_count() {
        let syncs = Syncs::default();
        assert_eq!(syncs.times(), SyncTimes::default());
        for _ in 0..RECENT_MAX {
            syncs.add(Duration::from_secs(9));
        }
        for us in 1..=u64::try_from(RECENT_MAX).unwrap() {
            syncs.add(Duration::from_micros(us));
        }
        let times = syncs.times();
        assert_eq!((times.p50_us, times.p99_us), (Some(512), Some(1013)));
        assert_eq!(times.counts[0..3], [250, 250, 500]);
        assert_eq!(times.counts[10], 1024);
    }
}
