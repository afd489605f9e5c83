//! Stands in for the published crate of this name, as far as openraft without its feature
//! `runtime-stats` needs it to compile.
//!
//! openraft counts its batches in such histograms whether or not that feature is on, and only the
//! feature lets anybody read them. The published crate fills tables for all its widths, 28 MiB of
//! them, when the first histogram is made: half of what an empty node takes. These histograms
//! keep nothing, for nobody asks. With the feature on, openraft does not compile against them.

use std::fmt;
use std::marker::PhantomData;

/// Counts nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<T = ()>(PhantomData<T>);

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Histogram<T> {
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Forgets `value`.
    pub const fn record(&mut self, _value: u64) {}

    /// Forgets `value`, seen `count` times.
    pub const fn record_n(&mut self, _value: u64, _count: u64) {}

    /// No samples.
    #[must_use]
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats::default()
    }
}

/// What a histogram would tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the published crate's names: p99_9 is the 99.9th percentile"
)]
pub struct PercentileStats {
    pub samples: u64,
    pub p0_1: u64,
    pub p1: u64,
    pub p5: u64,
    pub p10: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not counted")
    }
}

/// A drawing of histograms, of none.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsciiChart;

impl AsciiChart {
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Leaves `histogram` out.
    #[must_use]
    pub fn add(self, _name: &str, _histogram: Histogram) -> Self {
        self
    }
}
