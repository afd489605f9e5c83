//! Points in time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds in a second.
pub const SECOND_MS: u64 = 1000;

/// Milliseconds since the Unix epoch, UTC.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch. In the state it means "never".
    pub const ZERO: Self = Self(0);

    /// From milliseconds since the epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }
    /// Milliseconds since the epoch.
    pub const fn ms(self) -> u64 {
        self.0
    }
    /// The time `ms` milliseconds later, at most the largest one.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
    /// Milliseconds since `earlier`. 0 if `earlier` is later.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    /// Milliseconds with their unit. The edges format times for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}
