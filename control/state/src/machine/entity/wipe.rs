//! Wipes of a machine's disks.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// How many wipe reports a machine keeps.
pub const WIPES_MAX: usize = 5;

/// How a disk was wiped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskWipe {
    /// Device path.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// `nvme-format`, `ata-secure-erase`, `discard`, `zero`.
    pub method: String,
    /// Why it failed; none when it did not.
    pub error: Option<String>,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// One wipe of all disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WipeRecord {
    /// When it was reported.
    pub at: Timestamp,
    /// Disk by disk.
    pub disks: Vec<DiskWipe>,
}
