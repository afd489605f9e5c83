//! Commands about site policies.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// See [`Op::SetPolicy`](crate::Op::SetPolicy).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPolicy {
    /// Which.
    pub name: String,
    /// In Rego.
    pub source: String,
    /// Paths of the methods that it judges.
    pub methods: BTreeSet<String>,
    /// Refused when it is another one that is in force; 0 when none must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
}

/// See [`Op::RemovePolicy`](crate::Op::RemovePolicy).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovePolicy {
    /// Which.
    pub name: String,
}
