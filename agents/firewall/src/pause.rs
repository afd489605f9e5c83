//! Pauses between the agent's looks at the kernel.

use std::time::Duration;

/// Pause between two looks at the kernel and at the file: a generation number, and the file's time
/// and length. Drift is healed after at most two.
const TICK: Duration = Duration::from_millis(100);

/// Pause before rules that could not be applied are applied again. It doubles with each failure.
const RETRY: Duration = Duration::from_secs(1);

/// Longest such pause.
const RETRY_MAX: Duration = Duration::from_secs(8);

/// Times in a row that the kernel did not take the rules.
#[derive(Debug, Default)]
pub(crate) struct FailureCount(u32);

impl FailureCount {
    /// Counts a failure.
    pub(crate) fn add(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// Begins anew when the kernel has the rules in force, unless others are still to be applied.
    pub(crate) fn settle(&mut self, is_pending: bool) {
        if !is_pending {
            self.0 = 0;
        }
    }

    /// Pause until the next look.
    pub(crate) fn pause(&self) -> Duration {
        match self.0.checked_sub(1) {
            None => TICK,
            Some(doubled) => RETRY
                .saturating_mul(1_u32.checked_shl(doubled).unwrap_or(u32::MAX))
                .min(RETRY_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rarer_while_the_kernel_refuses() {
        for (failures, pause_ms) in [(0, 100), (1, 1000), (2, 2000), (4, 8000), (5, 8000)] {
            let pause = FailureCount(failures).pause();
            assert_eq!(pause, Duration::from_millis(pause_ms), "{failures}");
        }
        let mut count = FailureCount(u32::MAX);
        count.add();
        assert_eq!(count.pause(), RETRY_MAX);
    }

    #[test]
    fn looks_are_as_often_as_before_once_nothing_is_to_be_applied() {
        let mut count = FailureCount::default();
        count.add();
        count.settle(true);
        assert_eq!(count.pause(), RETRY);
        count.settle(false);
        assert_eq!(count.pause(), TICK);
    }
}
