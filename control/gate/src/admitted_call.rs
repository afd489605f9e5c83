//! The audit record of an admitted call, written however the call ends.

use std::sync::Arc;

use control_authz::{AuditedCall, Permit};
use control_store::CallEnd;
use tonic::Code;

use crate::context::ServiceContext;

/// A call in progress. Dropped before [`AdmittedCall::end`] it is recorded as cancelled.
#[derive(Debug)]
pub struct AdmittedCall {
    pub(crate) core: Arc<ServiceContext>,
    pub(crate) record: Option<Arc<AuditedCall>>,
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        // Drop cannot await, so the record is queued without waiting for room.
        if let Some(end) = self.end(Code::Cancelled) {
            self.core.audit.try_put(end);
        }
    }
}

impl AdmittedCall {
    /// Ties the permit to this call's audit record, and marks it as a dry run.
    pub(crate) fn mark(&self, permit: Permit, is_trial: bool) -> Permit {
        let permit = match is_trial {
            true => permit.for_trial(),
            false => permit,
        };
        match &self.record {
            Some(call) => permit.for_call(Arc::clone(call)),
            None => permit,
        }
    }

    /// The end of the call; `None` if it was taken before or the call is not audited.
    pub(crate) fn end(&mut self, code: Code) -> Option<CallEnd> {
        Some(CallEnd {
            call: self.record.take()?,
            code: code.into(),
            reason: None,
            time: self.core.now(),
        })
    }
}
