//! Events of a claim.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Most events kept of a claim; beyond it the oldest are dropped.
pub const NOTES_KEPT_MAX: usize = 32;

/// An event of a claim. It tells nothing about the host that the project may not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimNote {
    /// Time.
    pub at: Timestamp,
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
}
