use std::time::Duration;

/// Most doublings of the first step. It keeps the shift within 32 bits; `max` applies long before.
const DOUBLINGS_MAX: u32 = 31;

/// Exponential backoff with jitter. The caller counts its consecutive failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
}

impl Backoff {
    /// The first step is `first`. Each further step is twice as long, at most `max`.
    #[must_use]
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { first, max }
    }

    /// The step after `failures` consecutive failures, without jitter. 0 gives the first step.
    #[must_use]
    pub fn step(self, failures: u32) -> Duration {
        let factor = 1 << failures.min(DOUBLINGS_MAX);
        self.first.saturating_mul(factor).min(self.max)
    }

    /// The pause after `failures` consecutive failures: the [`jittered`] step.
    #[must_use]
    pub fn pause(self, failures: u32) -> Duration {
        jittered(self.step(failures))
    }
}

/// A random time between half of `pause` and `pause`. Callers that failed at the same moment then
/// do not retry at the same moment, and no caller waits longer than `pause`.
#[must_use]
pub fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

    #[test]
    fn steps_double_up_to_the_bound() {
        for (failures, ms) in [
            (0, 100),
            (1, 200),
            (4, 1600),
            (7, 10_000),
            (u32::MAX, 10_000),
        ] {
            assert_eq!(BACKOFF.step(failures), Duration::from_millis(ms));
        }
    }

    #[test]
    fn steps_of_a_long_time_do_not_overflow() {
        let backoff = Backoff::new(Duration::MAX / 2, Duration::MAX);
        assert_eq!(backoff.step(5), Duration::MAX);
    }

    #[test]
    fn a_pause_is_between_half_of_its_step_and_all_of_it() {
        for failures in 0..200 {
            let step = BACKOFF.step(failures);
            let pause = BACKOFF.pause(failures);
            assert!(step / 2 <= pause && pause <= step, "{pause:?} of {step:?}");
        }
    }
}
