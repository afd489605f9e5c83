//! Bounds of the watches of a node.

use std::time::Duration;

/// Bounds of watches.
#[derive(Debug, Clone, Copy)]
pub struct WatchLimits {
    /// Watches at the same time on one node.
    pub watches: usize,
    /// Watches of one user at the same time on one node.
    pub per_user: usize,
    /// How long a caller may take to take one message before its watch is ended.
    pub stall: Duration,
    /// Interval after which an idle watch sends a bookmark with its revision.
    pub bookmark: Duration,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self {
            watches: 8192,
            per_user: 2048,
            stall: Duration::from_secs(60),
            bookmark: Duration::from_secs(10),
        }
    }
}
