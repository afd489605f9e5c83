//! Ports, and the bounds of downloads.

use std::time::Duration;

/// UDP ports. Firmware knows only the defaults; a simulation on loopback, whose clients come over a
/// relay, may use others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub dhcp: u16,
    pub tftp: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { dhcp: 67, tftp: 69 }
    }
}

/// Bounds of fetching an installer by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest kernel, bytes. A longer one is refused.
    pub kernel_len_max: u64,
    /// Longest image, bytes. A longer one is refused.
    pub image_len_max: u64,
    /// Read timeout: a download without data for this time fails.
    pub stall: Duration,
    /// Time limit of the download of one file.
    pub time_max: Duration,
    /// First backoff. It doubles with each failure, up to `retry_max`.
    pub retry_min: Duration,
    /// Longest backoff.
    pub retry_max: Duration,
    /// Interval at which a fetched pair is compared with its server's.
    pub recheck: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            kernel_len_max: 256 << 20,
            image_len_max: 2 << 30,
            stall: Duration::from_secs(30),
            time_max: Duration::from_secs(3600),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            recheck: Duration::from_secs(300),
        }
    }
}
