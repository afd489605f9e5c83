//! Images that a size allows.

use proto_types::SizeId;
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// Versions of one operating system that a size allows.
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
    /// The key: the size that is constrained.
    pub size: SizeId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Allowed versions by operating system. Other operating systems are allowed in every version.
    #[serde(default)]
    pub image_constraints: Vec<ImageConstraint>,
}
