//! The clock of a node. Commands carry its time, because the state machine must not read a clock.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use proto_types::Timestamp;

/// A source of time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Now, UTC.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system, kept monotonic while the process lives.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest_ms: AtomicU64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // NTP may set the clock back. A later command with an earlier time would make things that
        // were just created look as if they were from the future.
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
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.ms()))
    }

    /// Moves the clock forward by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::Relaxed))
    }
}
