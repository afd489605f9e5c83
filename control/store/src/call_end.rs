//! The end of a call, from which its audit records are made.

use std::sync::Arc;

use control_authz::AuditedCall;
use control_state::bounds::clip;
use control_state::{AuditEntry, AuditPhase};
use proto_types::Timestamp;

use crate::tables::entry;

/// How much of the reason of a refusal is recorded, bytes.
const REASON_BYTES_MAX: usize = 4096;

/// How a call ended.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// The call.
    pub call: Arc<AuditedCall>,
    /// Status code of gRPC.
    pub code: i32,
    /// What the caller was told, where that belongs into the record.
    pub reason: Option<String>,
    /// When.
    pub time: Timestamp,
}

impl CallEnd {
    /// Whether the record of the call's change says it all.
    pub(crate) fn is_recorded(&self) -> bool {
        self.code == 0 && self.call.recorded.get()
    }

    /// As whole calls where the chain has begun, else in halves as older programs know them.
    pub(crate) fn entries(self, is_chained: bool) -> Vec<AuditEntry> {
        let Self {
            call,
            code,
            reason,
            time,
        } = self;
        let whole = AuditEntry {
            ended: Some(time),
            result_code: Some(code),
            ..entry(&call)
        };
        let response = AuditEntry {
            time,
            ended: None,
            phase: AuditPhase::Response,
            body: reason.clone(),
            ..whole.clone()
        };
        if call.recorded.get() {
            // The record of the change has said that it went well.
            return vec![response];
        }
        if is_chained {
            let reason = reason.map(|reason| clip(&reason, REASON_BYTES_MAX).to_owned());
            let body = match (whole.body.clone(), reason) {
                (Some(body), Some(reason)) => Some(format!("{body}: {reason}")),
                (body, reason) => body.or(reason),
            };
            return vec![AuditEntry { body, ..whole }];
        }
        let request = AuditEntry {
            ended: None,
            result_code: None,
            phase: AuditPhase::Request,
            ..whole
        };
        vec![request, response]
    }
}
