//! Bounds of the fetches of a node.

use std::time::Duration;

/// Bounds of the fetches by which a node finds digests.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Most concurrent fetches; more are refused with `resource_exhausted`. Each costs a connection
    /// and the work of hashing.
    pub fetches: usize,
    /// Most results that wait for a caller. Beyond it the oldest is dropped.
    pub results: usize,
    /// Longest time that a result waits for a caller.
    pub kept: Duration,
    /// Largest image that is read, bytes: as large as an installer accepts. A larger one is refused.
    pub image_bytes_max: u64,
    /// Longest silence of an image store.
    pub stall: Duration,
    /// Longest time for a whole fetch.
    pub whole: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            fetches: 8,
            results: 64,
            kept: Duration::from_secs(600),
            image_bytes_max: 64 << 30,
            stall: Duration::from_secs(30),
            whole: Duration::from_secs(600),
        }
    }
}
