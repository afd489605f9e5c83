//! Numbers of several rounds.

/// The middle of some numbers; `None` of none.
pub(crate) fn median(numbers: &[f64]) -> Option<f64> {
    quantile(numbers, 0.5)
}

/// The number that this share of all does not exceed; `None` of none.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank needs no more precision"
)]
pub(crate) fn quantile(numbers: &[f64], share: f64) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let at = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn ranks() {
        let numbers: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (share, wanted) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert_eq!(quantile(&numbers, share), Some(wanted), "{share}");
        }
        assert_eq!(median(&[]), None);
    }
}
