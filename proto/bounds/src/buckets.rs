//! Rate limits per caller: the generic cell rate algorithm (GCRA).

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// A minute in microseconds.
const MINUTE_US: u64 = 60_000_000;

/// The rate limit of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Sustained rate, events per minute. 0 counts as 1.
    pub per_minute: u32,
    /// Burst allowance after a pause, as milliseconds of the sustained rate.
    pub burst_ms: u64,
}

/// Token buckets of many callers.
#[derive(Debug)]
pub struct Buckets<K: Ord> {
    callers_max: usize,
    /// Theoretical arrival time of the next event of each caller, microseconds.
    through: Mutex<BTreeMap<K, u64>>,
}

impl<K: Ord> Buckets<K> {
    /// Buckets for at most `callers_max` callers. When they are used up, idle callers are forgotten.
    pub const fn new(callers_max: usize) -> Self {
        Self {
            callers_max,
            through: Mutex::new(BTreeMap::new()),
        }
    }

    /// Counts one event. `now_us` comes from a monotonic clock.
    ///
    /// # Errors
    /// The wait in milliseconds, if the caller exceeded its rate or there are too many callers.
    pub fn count(&self, caller: K, rate: Rate, now_us: u64) -> Result<(), u64> {
        self.count_many(caller, rate, 1, now_us)
    }

    /// Counts `events` at once: as many kilobytes of a request, say. They pass when one event would,
    /// and are all paid off before the next.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn count_many(&self, caller: K, rate: Rate, events: u32, now_us: u64) -> Result<(), u64> {
        let mut through = self.through.lock();
        if through.len() >= self.callers_max && !through.contains_key(&caller) {
            // A caller whose time has passed has its full burst again, as a new one has: forgetting
            // it changes nothing.
            through.retain(|_, until| *until > now_us);
            if through.len() >= self.callers_max {
                return Err(rate.burst_ms.max(1));
            }
        }
        let until = through.entry(caller).or_insert(now_us);
        let begin = (*until).max(now_us);
        let ahead_ms = (begin - now_us) / 1000;
        if ahead_ms >= rate.burst_ms.max(1) {
            return Err(ahead_ms - rate.burst_ms.max(1) + 1);
        }
        // Multiplied first: many rounded parts would be some events too few.
        let all_us = MINUTE_US.saturating_mul(events.into()) / u64::from(rate.per_minute.max(1));
        *until = begin.saturating_add(all_us);
        Ok(())
    }

    /// Number of callers in memory.
    pub fn callers(&self) -> usize {
        self.through.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_minute: 60,
        burst_ms: 10_000,
    };

    fn at(seconds: u64) -> u64 {
        1_000_000_000 + seconds * 1_000_000
    }

    fn calls(buckets: &Buckets<&'static str>, caller: &'static str, at_us: u64) -> usize {
        let call = || buckets.count(caller, RATE, at_us);
        (0..1000).take_while(|_| call().is_ok()).count()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let buckets = Buckets::new(100);
        assert_eq!(calls(&buckets, "a", at(0)), 10, "a burst");
        assert_eq!(calls(&buckets, "b", at(0)), 10, "each has its own");
        assert_eq!(calls(&buckets, "a", at(3)), 3, "one a second");
        let rested = calls(&buckets, "a", at(1000));
        assert_eq!(rested, 10, "pauses add up to a burst alone");
        let wait_ms = buckets.count("a", RATE, at(1000)).unwrap_err();
        let later = at(1000) + wait_ms * 1000;
        assert_eq!(calls(&buckets, "a", later), 1, "waiting so long is enough");
    }

    #[test]
    fn many_events_at_once_count_as_many() {
        let buckets = Buckets::new(10);
        let count = |events, at_us| buckets.count_many("a", RATE, events, at_us);
        assert_eq!(count(25, at(0)), Ok(()), "whole, as long as one would pass");
        assert!(count(1, at(14)).is_err());
        assert_eq!(count(1, at(16)), Ok(()));
        assert_eq!(count(u32::MAX, at(100)), Ok(()));
        assert!(count(1, at(1_000_000)).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let buckets = Buckets::new(50);
        for number in 0..60 {
            let counted = buckets.count(number, RATE, at(0));
            assert_eq!(counted.is_ok(), number < 50, "{number}");
        }
        assert_eq!(buckets.callers(), 50);
        assert!(buckets.count(99, RATE, at(20)).is_ok());
        assert_eq!(buckets.callers(), 1);
    }
}
