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
    /// The size whose constraint changes.
    pub size: SizeId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// All allowed versions, by operating system. Others are allowed in every version.
    #[serde(default)]
    pub image_constraints: Option<Vec<ImageConstraint>>,
}
