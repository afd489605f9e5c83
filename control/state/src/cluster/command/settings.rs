//! Commands about settings of the cluster.

use serde::{Deserialize, Serialize};

use crate::cluster::entity::{AuditRetention, Budgets};

/// See [`Op::SetSettings`](crate::Op::SetSettings). Fields that are `None` stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetSettings {
    /// How long the audit trail is kept.
    pub audit: Option<AuditRetention>,
    /// How much one user may have.
    pub budgets: Option<Budgets>,
}
