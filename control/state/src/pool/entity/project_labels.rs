//! Labels and alias of a project that administrators give, and that the project cannot change.

use proto_types::{ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::meta::Labels;

/// Longest alias of a project, bytes; a longer one is refused.
pub const ALIAS_BYTES_MAX: usize = 128;

/// The names and labels that deploy policies know of a project beside its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectLabels {
    /// The key: the project.
    pub project: ProjectId,
    /// A second name, which patterns read. `None` means none.
    #[serde(default)]
    pub alias: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Time of the last change.
    pub updated_at: Timestamp,
}
