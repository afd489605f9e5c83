//! Earlier revisions of sets of rules.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{RuleRevision, RuleSetKey};

/// An earlier revision of a set of rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FirewallRuleHistory {
    /// The set.
    pub set: RuleSetKey,
    /// The revision.
    pub revision: RuleRevision,
}

/// Key of a [`FirewallRuleHistory`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleHistoryKey {
    /// The set.
    pub set: RuleSetKey,
    /// Number of the revision.
    pub number: u64,
}

impl fmt::Display for RuleHistoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.set, self.number)
    }
}
