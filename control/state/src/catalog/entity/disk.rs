//! Disks of a filesystem layout, and their partitions.

use serde::{Deserialize, Serialize};

/// GPT partition type, by sgdisk's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GptType {
    /// EFI system partition.
    #[serde(rename = "ef00")]
    Boot,
    /// BIOS boot partition; not in the public contract, used by the built-in layout.
    #[serde(rename = "ef02")]
    BiosGrub,
    /// Linux filesystem.
    #[serde(rename = "8300")]
    Linux,
    /// Linux RAID.
    #[serde(rename = "fd00")]
    LinuxRaid,
    /// Linux LVM.
    #[serde(rename = "8e00")]
    LinuxLvm,
}

impl GptType {
    /// sgdisk's code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Boot => "ef00",
            Self::BiosGrub => "ef02",
            Self::Linux => "8300",
            Self::LinuxRaid => "fd00",
            Self::LinuxLvm => "8e00",
        }
    }
}

/// A partition of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskPartition {
    /// Number in the partition table, from 1.
    pub number: u32,
    /// GPT label. `None` means none.
    #[serde(default)]
    pub label: Option<String>,
    /// Size, MiB. 0 takes the rest of the disk, in the last partition only.
    pub size_mib: u64,
    /// GPT type. `None` means a Linux filesystem.
    #[serde(default)]
    pub gpt_type: Option<GptType>,
}

/// A disk to cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Device path, or a selector: `@first`, `@smallest`, `@serial=...`.
    pub device: String,
    /// Partitions in the order in which they lie on the disk.
    #[serde(default)]
    pub partitions: Vec<DiskPartition>,
}
