//! Filesystem layouts: partitions, arrays, volumes and filesystems of a machine.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{LayoutId, SizeId};
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{Disk, Filesystem, LogicalVolume, Raid, VolumeGroup};
use crate::meta::Meta;

/// Id of the layout that is built in and used when no other matches.
pub const LAYOUT_DEFAULT: &str = "default";

/// Sizes and images for which a layout is chosen when a request names none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayoutConstraints {
    /// Sizes for which the layout is chosen.
    pub sizes: BTreeSet<SizeId>,
    /// Version requirement by operating system. Systems that are not listed do not match.
    pub images: BTreeMap<String, String>,
}

/// A filesystem layout: partitions, arrays, volumes and filesystems of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The key.
    pub id: LayoutId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Display name.
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
    /// Sizes and images for which the layout is chosen when a request names none. Empty means that
    /// a request must name it.
    #[serde(default)]
    pub constraints: LayoutConstraints,
}
