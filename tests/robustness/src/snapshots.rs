//! Settings of a cluster's snapshots, by what a test is after.

/// The condition in which the leader sends a snapshot instead of the log, and the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Snapshots {
    /// The defaults of the product.
    Seldom,
    /// After a second away, at a rate that takes seconds: long enough to be interrupted.
    Slow,
    /// One every few seconds, so that a full disk soon fails: the log preallocates its space.
    Often,
}

impl Snapshots {
    /// Lines of `[peers]` and `[store]`.
    pub(crate) fn settings(self) -> [&'static str; 2] {
        match self {
            Self::Seldom => ["", ""],
            Self::Slow => [
                "snapshot_bytes_per_second = 60000\n",
                "snapshot_every_entries = 30\nkeep_entries = 30\n",
            ],
            Self::Often => ["", "snapshot_every_entries = 200\n"],
        }
    }
}
