use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Statistics;
use crate::netlink::{Kernel, NetlinkError};
use crate::rule::RuleSet;

/// Shortest time between two readings of all counters. Ten thousand of them are read in some
/// milliseconds.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);

/// The last reading of the counters, shared by who reads them and who asks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sampler {
    interval: Duration,
    last: Arc<Mutex<LastSample>>,
}

#[derive(Debug, Default)]
struct LastSample {
    /// When it was read. `None` before the first time.
    at: Option<Instant>,
    statistics: Arc<Statistics>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new(SAMPLE_INTERVAL)
    }
}

impl Sampler {
    /// A sampler that reads the counters at most so often.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            last: Arc::default(),
        }
    }

    /// Reads the counters if the last reading is older than the interval. `true` if it did.
    ///
    /// # Errors
    /// The kernel cannot be read. The next attempt is after the interval.
    pub fn sample(&self, kernel: &Kernel, rules: &RuleSet) -> Result<bool, NetlinkError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.at.is_some_and(|at| at.elapsed() < self.interval) {
            return Ok(false);
        }
        last.at = Some(Instant::now());
        let counters = kernel.counters()?;
        last.statistics = Arc::new(Statistics::new(now_ms(), counters, rules));
        Ok(true)
    }

    /// The last reading; all zero before the first one.
    #[must_use]
    pub fn last(&self) -> Arc<Statistics> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&last.statistics)
    }
}

/// Milliseconds since 1970; 0 if the clock is before it.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
