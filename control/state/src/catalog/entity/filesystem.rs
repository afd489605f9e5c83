//! Filesystems of a filesystem layout.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The kind of a filesystem, which chooses its mkfs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    /// FAT, for the EFI system partition.
    Vfat,
    /// ext3.
    Ext3,
    /// ext4.
    Ext4,
    /// Swap space.
    Swap,
    /// In memory.
    Tmpfs,
    /// Left as it is.
    None,
}

impl Format {
    /// The name that the wire and mkfs use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// The device: the path of a partition, `<disk>:<number>`, an array or a logical volume.
    pub device: String,
    /// The kind of filesystem.
    pub format: Format,
    /// Display name. `None` means none.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Mount point. `None` means that it is not mounted.
    #[serde(default)]
    pub path: Option<String>,
    /// Label of the filesystem. `None` means none.
    #[serde(default)]
    pub label: Option<String>,
    /// Mount options, for fstab.
    #[serde(default)]
    pub mount_options: Vec<String>,
    /// Options for mkfs.
    #[serde(default)]
    pub create_options: Vec<String>,
}
