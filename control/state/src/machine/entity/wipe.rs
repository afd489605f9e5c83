//! Reports of wipes of a machine's disks.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Most wipe reports kept per machine; beyond it the oldest are dropped.
pub const WIPES_MAX: usize = 5;

/// Wipe of one disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskWipe {
    /// Device path.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// `nvme-format`, `ata-secure-erase`, `discard`, `zero`.
    pub method: String,
    /// Error; `None` means success.
    pub error: Option<String>,
    /// Duration, milliseconds.
    pub duration_ms: u64,
}

/// One wipe of all disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WipeRecord {
    /// Time of the report.
    pub at: Timestamp,
    /// Wipes of the disks.
    pub disks: Vec<DiskWipe>,
}
