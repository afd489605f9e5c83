//! Commands about the images that sizes allow.

use proto_types::SizeId;
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{ImageConstraint, SizeImageConstraint};
use crate::meta::Lock;

/// A whole entity; of its head only the labels count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateSizeImageConstraint(pub SizeImageConstraint);

/// Deletes the one of this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteSizeImageConstraint(pub SizeId);

/// See [`Op::UpdateSizeImageConstraint`](crate::Op::UpdateSizeImageConstraint).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSizeImageConstraint {
    /// Which.
    pub size: SizeId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Allowed versions by operating system.
    #[serde(default)]
    pub image_constraints: Option<Vec<ImageConstraint>>,
}
