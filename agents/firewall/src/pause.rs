//! Pauses between the agent's looks at the kernel.

use std::time::Duration;

/// Pause between two looks at the kernel and at the file: a generation number, and the file's time
/// and length. Drift is healed after at most two.
const TICK: Duration = Duration::from_millis(100);

/// Pause before rules that could not be applied are applied again. It doubles with each failure.
const RETRY: Duration = Duration::from_secs(1);

/// Longest such pause.
const RETRY_MAX: Duration = Duration::from_secs(8);

/// Pause until the next look, after so many failures in a row.
pub(crate) fn pause(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => TICK,
        Some(doubled) => RETRY
            .saturating_mul(1_u32.checked_shl(doubled).unwrap_or(u32::MAX))
            .min(RETRY_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rarer_while_the_kernel_refuses() {
        for (failures, pause_ms) in [(0, 100), (1, 1000), (2, 2000), (4, 8000), (5, 8000)] {
            assert_eq!(
                pause(failures),
                Duration::from_millis(pause_ms),
                "{failures}"
            );
        }
        assert_eq!(pause(u32::MAX), RETRY_MAX);
    }
}
