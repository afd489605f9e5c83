//! Sizes, and what they demand of hardware.

use proto_types::SizeId;
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// The resource that a constraint bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeConstraintType {
    /// Sum of CPU cores; identifier is a glob on the CPU's model.
    Cores,
    /// Memory, bytes; no identifier.
    Memory,
    /// Sum of disk sizes, bytes; identifier is a glob on the disk's device path.
    Storage,
    /// Number of GPUs; identifier is a glob on the GPU's model.
    Gpu,
}

/// A bound on hardware, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeConstraint {
    /// The bounded resource.
    pub kind: SizeConstraintType,
    /// Lower bound, in the unit of the resource.
    pub min: u64,
    /// Upper bound, in the unit of the resource.
    pub max: u64,
    /// Glob that chooses the CPUs, disks or GPUs that count. `None` means that all count.
    #[serde(default)]
    pub identifier: Option<String>,
}

/// A class of machines that are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The key.
    pub id: SizeId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Constraints on the hardware. Empty means that no hardware matches.
    #[serde(default)]
    pub constraints: Vec<SizeConstraint>,
}
