//! Records of the audit trail.

use control_state::{AuditEntry, AuditPhase as Kept};
use proto_public::api::v2::{AuditPhase, AuditTrace, Meta};

use super::time;

/// An entry as one trace: the request of the call and its outcome.
pub fn trace(entry: &AuditEntry) -> AuditTrace {
    let phase = match entry.phase {
        Kept::Request => AuditPhase::Request,
        Kept::Response | Kept::Call | Kept::Dropped => AuditPhase::Response,
    };
    AuditTrace {
        uuid: entry.id.clone(),
        timestamp: time(entry.time),
        user: entry.user.clone(),
        tenant: entry.tenant.clone(),
        project: entry.project.clone(),
        method: entry.method.clone(),
        body: entry.body.clone(),
        source_ip: entry.source_ip.clone(),
        result_code: entry.result_code,
        phase: phase.into(),
        meta: Some(Meta {
            created_at: time(entry.time),
            updated_at: time(entry.ended.unwrap_or(entry.time)),
            ..Default::default()
        }),
    }
}
