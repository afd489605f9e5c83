//! Commands about site policies.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// See [`Op::SetPolicy`](crate::Op::SetPolicy).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPolicy {
    /// Name of the policy to create or replace: 1 to 63 of a-z, 0-9 and -.
    pub name: String,
    /// Source in Rego.
    pub source: String,
    /// Paths of the methods that the policy judges; at least one.
    pub methods: BTreeSet<String>,
    /// Generation that the policy must have; 0 means that it must not exist. `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
}

/// See [`Op::RemovePolicy`](crate::Op::RemovePolicy).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovePolicy {
    /// Name of the policy to remove.
    pub name: String,
}
