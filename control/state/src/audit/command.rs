//! Commands about the audit trail.

use serde::{Deserialize, Serialize};

use crate::audit::entity::AuditEntry;

/// See [`Op::AppendAudit`](crate::Op::AppendAudit).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppendAudit {
    /// Records to append, in order; `apply` sets sequence numbers and hashes.
    pub entries: Vec<AuditEntry>,
}

/// See [`Op::MarkAuditExport`](crate::Op::MarkAuditExport).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkAuditExport {
    /// The place's name in the configuration.
    pub name: String,
    /// The last record that was sent.
    pub sequence: u64,
    /// Records up to here may be missing there: they were dropped before they could be sent.
    pub missed: u64,
}

/// See [`Op::ForgetAuditExport`](crate::Op::ForgetAuditExport).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForgetAuditExport {
    /// The place's name in the configuration of before.
    pub name: String,
}
