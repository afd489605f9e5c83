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

/// Maturity of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Classification {
    /// For trials.
    Preview,
    /// For production. A request for the newest patch of a version gets one of these.
    Supported,
    /// Not for new machines. A request that names its exact id still gets it.
    Deprecated,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The key: operating system and version, `os-version`.
    pub id: ImageId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// URL of the compressed tar file, http or https.
    pub url: String,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Uses of the image; at least one.
    #[serde(default)]
    pub features: BTreeSet<ImageFeature>,
    /// Maturity of the image.
    pub classification: Classification,
    /// Time from which no machine is allocated with the image. Machines that have it keep it.
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
