//! Whether a call's read has to ask a majority, or may rely on the read of the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `true` as long as this node is known to have every write that was acknowledged before a call:
/// the gate has read for it, and the call has neither read nor written since. Clones share it.
#[derive(Debug, Clone)]
pub struct Freshness(Arc<AtomicBool>);

impl Freshness {
    /// Of a call for which the gate has just read. A stream goes on long after that, so that it
    /// asks for itself.
    pub fn of_call(is_stream: bool) -> Self {
        Self(Arc::new(AtomicBool::new(!is_stream)))
    }

    /// Spends it: `true` at most once for all clones. A write spends it too, as the node may not
    /// have applied that write when the call reads next.
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
