//! The end of a call, from which its audit records are made.

use std::sync::Arc;

use control_authz::AuditedCall;
use control_state::bounds::clip;
use control_state::{AuditEntry, AuditPhase};
use proto_types::Timestamp;

use crate::tables::entry;

/// Most bytes of the reason of a refusal that are recorded; the rest is cut off.
const REASON_BYTES_MAX: usize = 4096;

/// How a call ended.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// The call.
    pub call: Arc<AuditedCall>,
    /// gRPC status code.
    pub code: i32,
    /// Message of the error, where it belongs into the record.
    pub reason: Option<String>,
    /// Time at which the call ended.
    pub time: Timestamp,
}

impl CallEnd {
    /// `true` if the record that was written with the change of the call is complete: a call that
    /// succeeds needs no second record.
    pub(crate) fn is_recorded(&self) -> bool {
        self.code == 0 && self.call.recorded.get()
    }

    /// The audit record of the end: of the whole call, or of its failure alone if the record that
    /// was written with the change of the call stands for a success.
    pub(crate) fn into_entry(self) -> AuditEntry {
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
            // The record written with the change stands for success, but the call failed after it.
            // The trail must not end with a success that the caller was never told.
            return response;
        }
        let reason = reason.map(|reason| clip(&reason, REASON_BYTES_MAX).to_owned());
        let body = match (whole.body.clone(), reason) {
            (Some(body), Some(reason)) => Some(format!("{body}: {reason}")),
            (body, reason) => body.or(reason),
        };
        AuditEntry { body, ..whole }
    }
}
