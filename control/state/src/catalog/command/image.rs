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
    /// Which.
    pub id: ImageId,
    /// Guard.
    pub lock: Lock,
    /// Where the compressed tar file is.
    #[serde(default)]
    pub url: Option<String>,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Uses of the image.
    #[serde(default)]
    pub features: Option<BTreeSet<ImageFeature>>,
    /// How mature it is.
    #[serde(default)]
    pub classification: Option<Classification>,
    /// Not handed out any more after this.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
