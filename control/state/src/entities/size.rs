//! Sizes, what they exclude, and who reserved how many.

use std::collections::BTreeSet;

use proto_types::{PartitionId, ProjectId, ReservationId, SizeId};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// What a constraint is about.
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
    /// What it is about.
    pub kind: SizeConstraintType,
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
    /// Glob that chooses which CPUs, disks or GPUs count; all without one.
    #[serde(default)]
    pub identifier: Option<String>,
}

/// A class of machines that are interchangeable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The key.
    pub id: SizeId,
    /// Head.
    pub meta: Meta,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What hardware belongs to it.
    #[serde(default)]
    pub constraints: Vec<SizeConstraint>,
}

/// Machines set aside for a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeReservation {
    /// The key.
    pub id: ReservationId,
    /// Head.
    pub meta: Meta,
    /// Shown name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// For whom.
    pub project: ProjectId,
    /// What.
    pub size: SizeId,
    /// Where; at least one.
    pub partitions: BTreeSet<PartitionId>,
    /// How many in each partition.
    pub amount: u32,
}

/// Which images a size allows of one operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConstraint {
    /// Operating system: the image id without its version.
    pub image: String,
    /// Version requirement, e.g. `>= 12.0`.
    pub semver_match: String,
}

/// Images that a size allows; a size without one allows all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeImageConstraint {
    /// The key.
    pub size: SizeId,
    /// Head.
    pub meta: Meta,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What is allowed; operating systems that are not named are allowed.
    #[serde(default)]
    pub image_constraints: Vec<ImageConstraint>,
}
