//! The clock of pixie. No other module reads the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, milliseconds since the epoch. A clock before the epoch counts as 0.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
