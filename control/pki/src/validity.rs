//! Ends of validity.

use std::time::Duration;

use proto_types::Timestamp;

/// The time `life` after `now`.
pub(crate) fn after(now: Timestamp, life: Duration) -> Timestamp {
    let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_ms(now.ms().saturating_add(life))
}
