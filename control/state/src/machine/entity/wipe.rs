//! Reports of wipes of a machine's disks.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Most wipe reports kept per machine; beyond it the oldest are dropped.
pub const WIPES_MAX: usize = 5;

/// Strength of a wipe, the weakest first.
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
    /// Partition tables and signatures were removed, and both ends of every disk overwritten: nothing
    /// boots or is assembled from it. The data between can be read: only the project whose they are may
    /// get the disks.
    Metadata,
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
    /// `nvme-format`, `ata-secure-erase`, `discard`, `zero`, `metadata`.
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
    /// Strength that control asked for. `None` means as strong as each disk can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<WipeLevel>,
}

impl DiskWipe {
    /// Methods by which a disk erases itself.
    const SANITIZING: [&'static str; 2] = ["nvme-format", "ata-secure-erase"];
    /// The method that leaves the data.
    const METADATA: &'static str = "metadata";

    fn level(&self) -> WipeLevel {
        match self.method.as_str() {
            Self::METADATA => WipeLevel::Metadata,
            method if Self::SANITIZING.contains(&method) => WipeLevel::Sanitize,
            _ => WipeLevel::Erase,
        }
    }
}

impl WipeRecord {
    /// The strength that every disk of the record reached. A machine without disks has nothing to
    /// wipe.
    pub fn level(&self) -> WipeLevel {
        let levels = self.disks.iter().map(DiskWipe::level);
        levels.min().unwrap_or(WipeLevel::Sanitize)
    }
}
