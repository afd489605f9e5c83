/// The fate of the counters that a firewall reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// They are kept, and were added to the sums.
    Kept,
    /// The last report is too young. The next one has all of it.
    TooSoon,
    /// There is no room for another firewall.
    NoRoom,
}
