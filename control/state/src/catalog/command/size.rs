//! Commands about sizes.

use proto_types::SizeId;
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{Size, SizeConstraint};
use crate::meta::{LabelsUpdate, Lock};

/// A whole entity; of its head only the labels count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateSize(pub Size);

/// Deletes the one of this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteSize(pub SizeId);

/// See [`Op::UpdateSize`](crate::Op::UpdateSize). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSize {
    /// The size to change.
    pub id: SizeId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// All constraints on the hardware.
    #[serde(default)]
    pub constraints: Option<Vec<SizeConstraint>>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
