//! Components of the published stack that report that they live.

use proto_types::{ComponentId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

/// The kind of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComponentKind {
    /// The PXE boot server.
    Pixiecore,
    /// The switch agent.
    MetalCore,
    /// The BMC agent.
    MetalBmc,
    /// Keeps copies of images.
    MetalImageCacheSync,
    /// Serial consoles.
    MetalConsole,
    /// Metrics.
    MetalMetricsExporter,
    /// Something of a user's own.
    ExternalApplication,
}

/// Version of a component, as it says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComponentVersion {
    /// Version, for example `v0.4.1`.
    pub version: String,
    /// Branch or tag of the source.
    pub revision: String,
    /// Commit of the source.
    pub git_sha1: String,
    /// Time of the build, as text.
    pub build_date: String,
}

/// A component that reports itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// The key. Kind and identifier together are unique as well.
    pub id: ComponentId,
    /// Kind of the component.
    pub kind: ComponentKind,
    /// Identifier of the component: a host name, mostly.
    pub identifier: String,
    /// Time of its first report.
    pub created_at: Timestamp,
    /// Start of the component, as it states it.
    pub started_at: Timestamp,
    /// Time of its last report, to within [`COMPONENT_TOUCH_MS`].
    pub reported_at: Timestamp,
    /// Time between two reports, milliseconds.
    pub interval_ms: u64,
    /// Version, as the component states it.
    pub version: ComponentVersion,
    /// The API token of its last report.
    pub token: TokenId,
}

/// A component that says nothing new is written down again after this, milliseconds.
pub const COMPONENT_TOUCH_MS: u64 = 5 * 60_000;
/// A component that is silent for so long is forgotten, milliseconds: a day, as the published
/// servers have it.
pub const COMPONENT_LIFE_MS: u64 = 24 * 3_600_000;
