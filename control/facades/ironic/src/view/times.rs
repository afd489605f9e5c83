//! Times as Ironic writes them.

use proto_types::Timestamp;
use serde_json::Value;
use time::OffsetDateTime;
use time::macros::format_description;

/// A time, `2026-11-21T01:32:53.548000+00:00`.
pub(crate) fn time(at: Timestamp) -> Value {
    let format = format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]+00:00"
    );
    let nanoseconds = i128::from(at.ms()) * 1_000_000;
    // Beyond the year 9999 there is no such text.
    OffsetDateTime::from_unix_timestamp_nanos(nanoseconds)
        .ok()
        .and_then(|time| time.format(format).ok())
        .map_or(Value::Null, Value::from)
}

/// A time; `null` for zero, which means never.
pub(crate) fn time_or_null(at: Timestamp) -> Value {
    match at {
        Timestamp::ZERO => Value::Null,
        at => time(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_with_an_offset() {
        let at = Timestamp::from_ms(1_795_224_773_548);
        assert_eq!(time(at), "2026-11-21T01:32:53.548000+00:00");
        assert_eq!(time_or_null(Timestamp::ZERO), Value::Null);
    }
}
