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
    /// The layout to change.
    pub id: LayoutId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// All filesystems.
    #[serde(default)]
    pub filesystems: Option<Vec<Filesystem>>,
    /// All disks, with their partitions.
    #[serde(default)]
    pub disks: Option<Vec<Disk>>,
    /// All software RAIDs.
    #[serde(default)]
    pub raids: Option<Vec<Raid>>,
    /// All LVM volume groups.
    #[serde(default)]
    pub volume_groups: Option<Vec<VolumeGroup>>,
    /// All LVM logical volumes.
    #[serde(default)]
    pub logical_volumes: Option<Vec<LogicalVolume>>,
    /// Sizes and images for which the layout is chosen when a request names none.
    #[serde(default)]
    pub constraints: Option<LayoutConstraints>,
}
