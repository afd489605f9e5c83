//! Operating system images.

use std::collections::BTreeSet;

use proto_types::{Digest, ImageId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::meta::{Meta, label};

/// A use of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageFeature {
    /// Servers.
    Machine,
    /// Firewalls.
    Firewall,
}

/// How mature an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Classification {
    /// To try.
    Preview,
    /// To use.
    Supported,
    /// To leave.
    Deprecated,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The key, `os-version`.
    pub id: ImageId,
    /// Head.
    pub meta: Meta,
    /// Where the compressed tar file is.
    pub url: String,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Uses of the image.
    #[serde(default)]
    pub features: BTreeSet<ImageFeature>,
    /// How mature it is.
    pub classification: Classification,
    /// Not handed out any more after this.
    pub expires_at: Timestamp,
}

impl Image {
    /// The digest that an installation verifies, from the label [`label::DIGEST`].
    pub fn digest(&self) -> Option<Digest> {
        self.meta
            .labels
            .get(label::DIGEST)
            .and_then(|text| text.parse().ok())
    }
}
