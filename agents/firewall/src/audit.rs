//! When the kernel's table is read as a whole although nobody has announced a change.

use std::time::{Duration, Instant};

/// Shortest time between two readings of the whole table without a reason.
const INTERVAL_MIN: Duration = Duration::from_secs(600);
/// The time between two readings is at least so many times as long as a reading takes: they cost at
/// most 1 % of a processor, however many rules there are.
const SHARE: u32 = 100;

/// The time of the next reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditSchedule {
    next: Instant,
}

impl AuditSchedule {
    /// A schedule that begins with a reading now, as at boot.
    pub(crate) fn starting(now: Instant) -> Self {
        Self { next: now }
    }

    /// `true` if the table must be read.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Plans the next reading after one that ended now.
    pub(crate) fn record(&mut self, now: Instant, took: Duration) {
        self.next = now + INTERVAL_MIN.max(took * SHARE);
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditSchedule, INTERVAL_MIN};
    use std::time::{Duration, Instant};

    #[test]
    fn readings_cost_a_bounded_share() {
        let begin = Instant::now();
        let mut schedule = AuditSchedule::starting(begin);
        assert!(schedule.is_due(begin), "at boot");
        for (took_ms, pause) in [
            (0, INTERVAL_MIN),
            (50, INTERVAL_MIN),
            (6_000, INTERVAL_MIN),
            (9_000, Duration::from_secs(900)),
        ] {
            schedule.record(begin, Duration::from_millis(took_ms));
            assert!(!schedule.is_due(begin + pause - Duration::from_millis(1)));
            assert!(schedule.is_due(begin + pause), "after {took_ms} ms");
        }
    }
}
