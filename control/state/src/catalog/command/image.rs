//! Commands about images.

use std::collections::BTreeSet;

use proto_types::{ImageId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{Classification, Image, ImageFeature};
use crate::meta::{LabelsUpdate, Lock};

/// A whole entity; of its head only the labels count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateImage(pub Image);

/// Deletes the one of this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteImage(pub ImageId);

/// See [`Op::UpdateImage`](crate::Op::UpdateImage). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateImage {
    /// The image to change.
    pub id: ImageId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// URL of the compressed tar file, http or https.
    #[serde(default)]
    pub url: Option<String>,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// All uses of the image; at least one.
    #[serde(default)]
    pub features: Option<BTreeSet<ImageFeature>>,
    /// Maturity of the image.
    #[serde(default)]
    pub classification: Option<Classification>,
    /// Time from which no machine is allocated with the image.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
