//! Flags for the end of a lease.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use prost_types::Timestamp;

use crate::text::{from_now, parse_duration};

/// Flags for the end of a lease.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct LeaseEndArgs {
    /// End of the lease: 2027-01-31 (midnight, UTC) or 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Time from now to the end of the lease, such as 30d.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    span: Option<Duration>,
}

impl LeaseEndArgs {
    /// The end. `None` means that no flag was given.
    ///
    /// # Errors
    /// The text is not a time.
    pub(super) fn time(&self) -> Result<Option<Timestamp>> {
        match (&self.until, self.span) {
            (Some(until), _) => parse_time(until).map(Some),
            (None, Some(span)) => Ok(Some(from_now(span))),
            (None, None) => Ok(None),
        }
    }
}

/// A time from a date (midnight, UTC) or an RFC 3339 timestamp.
///
/// # Errors
/// The text is neither.
pub(super) fn parse_time(text: &str) -> Result<Timestamp> {
    let parsed: Option<Timestamp> = text.parse().ok();
    parsed
        .with_context(|| format!("{text:?} is not a time like 2027-01-31 or 2027-01-31T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_leases() {
        for (text, seconds) in [
            ("2027-01-31", Some(1_801_353_600)),
            ("2027-01-31T12:00:00Z", Some(1_801_396_800)),
            ("tomorrow", None),
            ("", None),
        ] {
            let parsed = parse_time(text).ok().map(|time| time.seconds);
            assert_eq!(parsed, seconds, "{text}");
        }
    }
}
