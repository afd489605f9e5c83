//! Filesystems of a filesystem layout.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// How a filesystem is made.
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
    /// Where it lies: a partition's path, `<disk>:<number>`, an array or a logical volume.
    pub device: String,
    /// How it is made.
    pub format: Format,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Mount point. `None` means that it is not mounted.
    #[serde(default)]
    pub path: Option<String>,
    /// Filesystem label.
    #[serde(default)]
    pub label: Option<String>,
    /// For fstab.
    #[serde(default)]
    pub mount_options: Vec<String>,
    /// For mkfs.
    #[serde(default)]
    pub create_options: Vec<String>,
}
