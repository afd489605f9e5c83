//! LVM volumes of a filesystem layout.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Placement of a logical volume on the physical volumes of its group.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum LvmType {
    /// One after the other.
    Linear,
    /// Striped over all devices.
    Striped,
    /// Mirrored.
    Raid1,
}

impl LvmType {
    /// The name that the wire uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An LVM volume group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeGroup {
    /// Name of the group.
    pub name: String,
    /// Device paths of the physical volumes; at least one.
    pub devices: Vec<String>,
    /// LVM tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// An LVM logical volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalVolume {
    /// Name of the volume.
    pub name: String,
    /// Name of the volume group that it is in.
    pub volume_group: String,
    /// Size, MiB. 0 takes the rest of the group, in its last volume only.
    pub size_mib: u64,
    /// Placement on the physical volumes of the group.
    pub lvm_type: LvmType,
}
