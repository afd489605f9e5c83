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
    /// Name of the export destination in the configuration.
    pub name: String,
    /// Sequence number of the last record that was sent. A mark that is not higher than the stored
    /// one is ignored.
    pub sequence: u64,
    /// Highest sequence number that the destination may lack, because the record was dropped before
    /// it was sent. 0 means none.
    pub missed: u64,
}

/// See [`Op::ForgetAuditExport`](crate::Op::ForgetAuditExport).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForgetAuditExport {
    /// Name of an export destination that the configuration no longer has.
    pub name: String,
}
