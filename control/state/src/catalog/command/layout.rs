//! Commands about filesystem layouts.

use proto_types::LayoutId;
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{
    Disk, Filesystem, Layout, LayoutConstraints, LogicalVolume, Raid, VolumeGroup,
};
use crate::meta::Lock;

/// A whole entity; of its head only the labels count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateLayout(pub Layout);

/// Deletes the one of this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteLayout(pub LayoutId);

/// See [`Op::UpdateLayout`](crate::Op::UpdateLayout). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateLayout {
    /// Which.
    pub id: LayoutId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Filesystems.
    #[serde(default)]
    pub filesystems: Option<Vec<Filesystem>>,
    /// Disks.
    #[serde(default)]
    pub disks: Option<Vec<Disk>>,
    /// Software RAIDs.
    #[serde(default)]
    pub raids: Option<Vec<Raid>>,
    /// Volume groups.
    #[serde(default)]
    pub volume_groups: Option<Vec<VolumeGroup>>,
    /// Logical volumes.
    #[serde(default)]
    pub logical_volumes: Option<Vec<LogicalVolume>>,
    /// Where it is used by itself.
    #[serde(default)]
    pub constraints: Option<LayoutConstraints>,
}
