//! Lets the first read of a call reuse the read index of the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `true` while the gate's read index covers this call: the gate has read for it, and the call has
/// neither read nor written since. Clones share the value (`Arc`).
#[derive(Debug, Clone)]
pub struct Freshness(Arc<AtomicBool>);

impl Freshness {
    /// For a call that the gate has just read for. A stream outlives that read, so it starts spent.
    pub fn of_call(is_stream: bool) -> Self {
        Self(Arc::new(AtomicBool::new(!is_stream)))
    }

    /// Spends the value: `true` at most once for all clones. A write spends it too, because the
    /// node may not have applied that write when the call reads next.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_read_of_a_call_relies_on_the_gate() {
        let call = Freshness::of_call(false);
        let clone = call.clone();
        assert!(clone.take());
        assert!(!call.take());
        assert!(!Freshness::of_call(true).take());
    }
}
