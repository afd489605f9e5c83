//! Commands about settings of the cluster.

use serde::{Deserialize, Serialize};

use crate::cluster::entity::{AuditRetention, Budgets};

/// See [`Op::SetSettings`](crate::Op::SetSettings). Fields that are `None` stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetSettings {
    /// Retention of the audit trail.
    pub audit: Option<AuditRetention>,
    /// Budgets of users, tenants and projects.
    pub budgets: Option<Budgets>,
}
