//! Counters of attempts in fixed windows, bounded in number.

use std::collections::BTreeMap;

use proto_types::Timestamp;

/// Window in which attempts are counted, milliseconds: five minutes.
pub(super) const WINDOW_MS: u64 = 5 * 60_000;
/// Most attempts of one network on one login per window.
pub(super) const PAIR_MAX: u32 = 10;
/// Most counters of one kind. When all are in use, the smallest are evicted.
pub(super) const COUNTS_MAX: usize = 10_000;

/// Attempts within one window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    began: Timestamp,
    attempts: u32,
}

/// Counters of one kind, each for one window.
#[derive(Debug)]
pub(super) struct AttemptCounts<K> {
    /// Most attempts per window.
    max: u32,
    pub(super) counts: BTreeMap<K, Count>,
}

impl<K: Ord + Clone> AttemptCounts<K> {
    /// Empty counters with this limit.
    pub(super) const fn new(max: u32) -> Self {
        Self {
            max,
            counts: BTreeMap::new(),
        }
    }

    /// Milliseconds until the next attempt is allowed; 0 means now.
    pub(super) fn wait_ms(&self, key: &K, now: Timestamp) -> u64 {
        self.counts.get(key).map_or(0, |count| {
            let age = now.since_ms(count.began);
            match count.attempts >= self.max {
                true => WINDOW_MS.saturating_sub(age),
                false => 0,
            }
        })
    }

    /// Counts an attempt.
    pub(super) fn add(&mut self, key: K, now: Timestamp) {
        if self.counts.len() >= COUNTS_MAX && !self.counts.contains_key(&key) {
            self.make_room(now);
        }
        let fresh = Count {
            began: now,
            attempts: 0,
        };
        let count = self.counts.entry(key).or_insert(fresh);
        if now.since_ms(count.began) >= WINDOW_MS {
            *count = fresh;
        }
        count.attempts = count.attempts.saturating_add(1);
    }

    /// Evicts expired counters or, if there are none, the tenth with the fewest attempts. A counter
    /// near its limit stays: otherwise an attacker could reset it by filling the table.
    fn make_room(&mut self, now: Timestamp) {
        (self.counts).retain(|_, count| now.since_ms(count.began) < WINDOW_MS);
        if self.counts.len() < COUNTS_MAX {
            return;
        }
        let mut all: Vec<(u32, Timestamp, K)> = self
            .counts
            .iter()
            .map(|(key, count)| (count.attempts, count.began, key.clone()))
            .collect();
        all.sort_unstable();
        for (_, _, key) in all.iter().take(COUNTS_MAX / 10) {
            self.counts.remove(key);
        }
    }

    /// Takes back the count of a successful attempt.
    pub(super) fn forgive(&mut self, key: &K) {
        if let Some(count) = self.counts.get_mut(key) {
            count.attempts = count.attempts.saturating_sub(1);
        }
    }
}
