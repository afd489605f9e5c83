//! Sets of rules.

use proto_firewall::RuleContent;
use proto_types::{ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use super::RuleSetKey;

/// The content of a set of rules at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleRevision {
    /// Its number, from 1.
    pub number: u64,
    /// Login of the caller that wrote it.
    pub author: String,
    /// Time of the write.
    pub at: Timestamp,
    /// Free text of the author.
    #[serde(default)]
    pub comment: String,
    /// Number of the revision that it repeats. `None` means that its content was written anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_to: Option<u64>,
    /// The rules.
    pub content: RuleContent,
    /// Length of the content in storage, bytes.
    pub bytes: u64,
}

/// A set of firewall rules: what one owner says about one firewall or one private network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FirewallRuleSet {
    /// The key.
    pub set: RuleSetKey,
    /// The project that the firewall or network belongs to.
    pub project: ProjectId,
    /// The revision that is in force.
    pub current: RuleRevision,
    /// Length of the contents of all earlier revisions in storage, bytes.
    #[serde(default)]
    pub history_bytes: u64,
    /// `true` for the copy of another firewall's set that a replacement left when it was taken back:
    /// the next one may overwrite it. Each write makes it `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_over: bool,
}
