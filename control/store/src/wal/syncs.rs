//! Durations of the syncs of the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the histogram's buckets, microseconds; slower syncs count in one more bucket.
pub const SYNC_BOUNDS_US: [u64; 10] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_000_000,
];
/// Number of latest syncs over which the quantiles are taken.
const RECENT_MAX: usize = 1024;

/// Durations of the log's syncs since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncTimes {
    /// Syncs in each bucket: at most as long as the bound of [`SYNC_BOUNDS_US`] at the same
    /// position, and longer than the bound before. The last count is of syncs above all bounds.
    pub counts: [u64; SYNC_BOUNDS_US.len() + 1],
    /// Sum of all durations, microseconds.
    pub sum_us: u64,
    /// Median of the last 1024 syncs, microseconds; `None` before the first sync.
    pub p50_us: Option<u64>,
    /// 99th percentile of the last 1024 syncs, microseconds; `None` before the first sync.
    pub p99_us: Option<u64>,
}

/// Histogram of sync durations. The flusher writes it, any thread reads it.
#[derive(Debug, Default)]
pub(crate) struct SyncHistogram {
    counts: [AtomicU64; SYNC_BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    recent: Mutex<RecentSyncs>,
}

#[derive(Debug, Default)]
struct RecentSyncs {
    /// Ring of durations, microseconds.
    us: Vec<u64>,
    /// Position of the next duration in the ring.
    next: usize,
}

impl SyncHistogram {
    /// Counts one sync.
    pub(crate) fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The bounds are inclusive, as those of a Prometheus histogram (`le`).
        let bucket = SYNC_BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        let mut recent = self.recent.lock();
        let position = recent.next;
        match recent.us.get_mut(position) {
            Some(old) => *old = us,
            None => recent.us.push(us),
        }
        recent.next = (position + 1) % RECENT_MAX;
    }

    /// Returns the counts so far.
    pub(crate) fn times(&self) -> SyncTimes {
        // Copied and unlocked before the sort, so that the flusher never waits for a reader's sort.
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
    fn quantiles_are_of_the_latest_syncs() {
        let syncs = SyncHistogram::default();
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
