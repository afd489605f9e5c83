//! Pools, and the labels that administrators give to projects.

use std::collections::BTreeSet;

use proto_types::{PoolId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::WipeLevel;
use crate::meta::Labels;
use crate::pool::entity::{DeployPolicy, MetadataRules, RevokeRule};

/// See [`Op::SetPool`](crate::Op::SetPool).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPool {
    /// The pool.
    pub id: PoolId,
    /// Generation that it must have; 0 means that there must be none. `None` means any.
    #[serde(default)]
    pub expected: Option<u64>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Policies. Empty admits nobody.
    #[serde(default)]
    pub policies: Vec<DeployPolicy>,
    /// Keys of the hosts' labels that projects see.
    #[serde(default)]
    pub published: BTreeSet<String>,
    /// Strength of the wipe between two claims.
    #[serde(default)]
    pub floor: WipeLevel,
    /// Longest reservation of a released host, milliseconds. 0 means none.
    #[serde(default)]
    pub reuse_max_ms: u64,
    /// Weakest wipe of a host that is kept for its last project. `None` means the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse_floor: Option<WipeLevel>,
    /// Labels and annotations of the hosts that claims repeat.
    #[serde(default, skip_serializing_if = "MetadataRules::is_empty")]
    pub metadata: MetadataRules,
    /// The rule for projects that are not admitted any more.
    #[serde(default)]
    pub on_revoke: RevokeRule,
}

/// See [`Op::DeletePool`](crate::Op::DeletePool).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeletePool {
    /// The pool.
    pub id: PoolId,
}

/// See [`Op::SetProjectLabels`](crate::Op::SetProjectLabels).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetProjectLabels {
    /// The project.
    pub project: ProjectId,
    /// A second name, which patterns of policies read. `None` means none.
    #[serde(default)]
    pub alias: Option<String>,
    /// All labels. Without any, and without an alias, the record is deleted.
    #[serde(default)]
    pub labels: Labels,
}
