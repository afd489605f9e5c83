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
    /// Which.
    pub id: SizeId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Constraints on the hardware.
    #[serde(default)]
    pub constraints: Option<Vec<SizeConstraint>>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
