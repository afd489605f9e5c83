//! Filesystem layouts: how a disk is cut.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{LayoutId, SizeId};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// Id of the layout that is built in and used when no other matches.
pub const LAYOUT_DEFAULT: &str = "default";

/// How a filesystem is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vfat => "vfat",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Swap => "swap",
            Self::Tmpfs => "tmpfs",
            Self::None => "none",
        }
    }
}

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

/// How a logical volume lies on its volume group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Striped => "striped",
            Self::Raid1 => "raid1",
        }
    }
}

/// A partition of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskPartition {
    /// From 1.
    pub number: u32,
    /// GPT label.
    #[serde(default)]
    pub label: Option<String>,
    /// MiB; 0 takes the rest and must be the last.
    pub size_mib: u64,
    /// GPT type.
    #[serde(default)]
    pub gpt_type: Option<GptType>,
}

/// A disk to cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Device path, or a selector: `@first`, `@smallest`, `@serial=...`.
    pub device: String,
    /// Its partitions in order.
    #[serde(default)]
    pub partitions: Vec<DiskPartition>,
}

/// A software RAID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raid {
    /// `/dev/md1`.
    pub array_name: String,
    /// Devices that it is made of.
    pub devices: Vec<String>,
    /// 0 or 1.
    pub level: u32,
    /// Further options for mdadm.
    #[serde(default)]
    pub create_options: Vec<String>,
    /// How many of the devices are spares.
    #[serde(default)]
    pub spares: u32,
}

/// An LVM volume group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeGroup {
    /// Name.
    pub name: String,
    /// Devices that it is made of.
    pub devices: Vec<String>,
    /// LVM tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// An LVM logical volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalVolume {
    /// Name.
    pub name: String,
    /// Volume group that it lies on.
    pub volume_group: String,
    /// MiB; 0 takes the rest and must be the last.
    pub size_mib: u64,
    /// How it lies there.
    pub lvm_type: LvmType,
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

/// Where a layout is used by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayoutConstraints {
    /// Sizes.
    pub sizes: BTreeSet<SizeId>,
    /// Version requirement by operating system.
    pub images: BTreeMap<String, String>,
}

/// How the disks of a machine are cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The key.
    pub id: LayoutId,
    /// Head.
    pub meta: Meta,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Filesystems.
    #[serde(default)]
    pub filesystems: Vec<Filesystem>,
    /// Disks.
    #[serde(default)]
    pub disks: Vec<Disk>,
    /// Software RAIDs.
    #[serde(default)]
    pub raids: Vec<Raid>,
    /// Volume groups.
    #[serde(default)]
    pub volume_groups: Vec<VolumeGroup>,
    /// Logical volumes.
    #[serde(default)]
    pub logical_volumes: Vec<LogicalVolume>,
    /// Where it is used by itself; without any, only when it is asked for.
    #[serde(default)]
    pub constraints: LayoutConstraints,
}
