//! A node's clock: it may be wrong by hours and jump.

use std::sync::atomic::{AtomicI64, Ordering};

use control_store::Clock;
use proto_types::Timestamp;

/// When the simulated world began, milliseconds since 1970.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// Virtual time and an error.
#[derive(Debug, Default)]
pub(crate) struct SimClock {
    offset_ms: AtomicI64,
}

impl SimClock {
    /// From now on the clock is wrong by so much.
    pub(crate) fn set_offset_ms(&self, offset_ms: i64) {
        self.offset_ms.store(offset_ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default().as_millis();
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let now = EPOCH_MS + elapsed + self.offset_ms.load(Ordering::Relaxed);
        Timestamp::from_ms(u64::try_from(now).unwrap_or_default())
    }
}

/// The time a right clock shows at a virtual time, milliseconds.
pub(crate) fn at(now_ms: u64) -> Timestamp {
    Timestamp::from_ms(EPOCH_MS.unsigned_abs() + now_ms)
}
