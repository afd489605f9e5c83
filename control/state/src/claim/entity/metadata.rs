//! Metadata of the host of a claim.

use serde::{Deserialize, Serialize};

use crate::meta::Labels;

/// Labels and annotations of a claim's host that its pool publishes, for clients that copy them to an
/// object of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimMetadata {
    /// Counts the changes, from 1. 0 means that nothing was ever published.
    pub revision: u64,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Number of labels and annotations that the pool publishes and that do not fit: the last ones by
    /// key are left out.
    pub omitted: u32,
}

impl ClaimMetadata {
    /// `true` if nothing was ever published.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the content of another one. It counts a revision if it differs.
    pub(crate) fn take(&mut self, other: Self) {
        let next = Self {
            revision: self.revision,
            ..other
        };
        if next != *self {
            *self = Self {
                revision: self.revision + 1,
                ..next
            };
        }
    }
}
