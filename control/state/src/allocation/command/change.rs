//! The commands that change and delete a node allocation.

use std::collections::BTreeMap;

use proto_types::{NodeAllocationId, ProjectId};
use serde::{Deserialize, Serialize};

use crate::meta::Lock;

/// See [`Op::UpdateNodeAllocation`](crate::Op::UpdateNodeAllocation). Fields that are `None` stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateNodeAllocation {
    /// The node allocation.
    pub id: NodeAllocationId,
    /// The project that must have it. `None` means that an administrator changes it.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Name; empty removes it.
    #[serde(default)]
    pub name: Option<String>,
    /// All additional fields.
    #[serde(default)]
    pub extra: Option<BTreeMap<String, String>>,
}

/// See [`Op::DeleteNodeAllocation`](crate::Op::DeleteNodeAllocation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteNodeAllocation {
    /// The node allocation.
    pub id: NodeAllocationId,
    /// The project that must have it. `None` means that an administrator deletes it.
    #[serde(default)]
    pub project: Option<ProjectId>,
}
