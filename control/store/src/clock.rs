//! Time at the edge: commands carry the time that the leader's clock showed.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use proto_types::Timestamp;

/// Tells the time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Now, UTC.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, made not to run backwards while the process lives.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest_ms: AtomicU64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let latest = self.latest_ms.fetch_max(ms, Ordering::Relaxed);
        Timestamp::from_ms(latest.max(ms))
    }
}

/// A clock that stands still until it is told otherwise; for tests and replays.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.ms()))
    }

    /// Goes on by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::Relaxed))
    }
}
