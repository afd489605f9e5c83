//! Writes of sets of rules.

use proto_firewall::RuleContent;
use proto_types::ProjectId;
use serde::{Deserialize, Serialize};

use crate::firewall::entity::RuleSetKey;

/// See [`Op::SetFirewallRules`](crate::Op::SetFirewallRules).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetFirewallRules {
    /// The set.
    pub set: RuleSetKey,
    /// Project of the caller. `None` means an administrator.
    pub project: Option<ProjectId>,
    /// The rules. They replace those on record.
    pub content: RuleContent,
    /// Free text.
    #[serde(default)]
    pub comment: String,
    /// Number of the revision that the caller read; 0 means that there was none. `None` means any.
    pub expected: Option<u64>,
}

/// See [`Op::RollBackFirewallRules`](crate::Op::RollBackFirewallRules).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollBackFirewallRules {
    /// The set.
    pub set: RuleSetKey,
    /// Project of the caller. `None` means an administrator.
    pub project: Option<ProjectId>,
    /// Number of the revision whose content comes back.
    pub number: u64,
    /// Free text.
    #[serde(default)]
    pub comment: String,
    /// Number of the revision that the caller read. `None` means any.
    pub expected: Option<u64>,
}

/// See [`Op::DeleteFirewallRules`](crate::Op::DeleteFirewallRules).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteFirewallRules {
    /// The set.
    pub set: RuleSetKey,
    /// Project of the caller. `None` means an administrator.
    pub project: Option<ProjectId>,
    /// Number of the revision that the caller read. `None` means any.
    pub expected: Option<u64>,
}
