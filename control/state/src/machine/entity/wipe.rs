//! Reports of wipes of a machine's disks.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Most wipe reports kept per machine; beyond it the oldest are dropped.
pub const WIPES_MAX: usize = 5;

/// Strength of a wipe.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum WipeLevel {
    /// Every disk was overwritten or discarded, and samples of it read back as erased.
    #[default]
    Erase,
    /// Every disk erased itself, blocks that no reader reaches included: `nvme-format` or
    /// `ata-secure-erase`.
    Sanitize,
}

impl WipeLevel {
    /// Short name for people.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

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

impl WipeRecord {
    /// Methods by which a disk erases itself.
    const SANITIZING: [&'static str; 2] = ["nvme-format", "ata-secure-erase"];

    /// The strength that every disk of the record reached. A machine without disks has nothing to
    /// wipe.
    pub fn level(&self) -> WipeLevel {
        let is_sanitized = |disk: &DiskWipe| Self::SANITIZING.contains(&disk.method.as_str());
        match self.disks.iter().all(is_sanitized) {
            true => WipeLevel::Sanitize,
            false => WipeLevel::Erase,
        }
    }
}
