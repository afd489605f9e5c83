//! Latencies and what to say about them.

use std::time::Duration;

/// Single latencies, microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    pub(crate) fn add(&mut self, latency: Duration) {
        self.0
            .push(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The latency that this share of all does not exceed, microseconds; 0 of none.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank needs no more precision"
    )]
    pub(crate) fn quantile_us(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        let at = rank.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(at).map_or(0.0, |us| *us as f64)
    }
}

/// The middle of some numbers; `None` of none.
pub(crate) fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = *sorted.get(sorted.len() / 2)?;
    let low = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(low.midpoint(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_medians() {
        let mut latencies = Latencies::default();
        for ms in (1..=100).rev() {
            latencies.add(Duration::from_millis(ms));
        }
        for (share, want) in [(0.0, 1e3), (0.5, 50e3), (0.99, 99e3), (1.0, 100e3)] {
            assert!((latencies.quantile_us(share) - want).abs() < 0.5, "{share}");
        }
        assert!(Latencies::default().quantile_us(0.5).abs() < 0.5);
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[5.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }
}
