//! Wishes of a claim beside its selector: tolerations, a failure domain, a host that it had.

use serde::{Deserialize, Serialize};

use crate::claim::entity::ClaimSelector;

/// A taint that a claim tolerates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClaimToleration {
    /// Key of the taint.
    pub key: String,
    /// Its value. `None` means any.
    #[serde(default)]
    pub value: Option<String>,
}

/// A failure domain that a claim wants its host in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DomainWish {
    /// The domain.
    pub name: String,
    /// `true` if no other will do; `false` if it is only better than others.
    #[serde(default)]
    pub required: bool,
}

/// A selector that makes a host better than others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PreferredTerm {
    /// Weight, 1 to 100: the host with the largest sum is chosen.
    pub weight: u32,
    /// The selector.
    pub selector: ClaimSelector,
}
