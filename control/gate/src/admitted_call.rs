//! The record of an audited call, which is written however the call ends.

use std::sync::Arc;

use control_authz::{AuditedCall, Permit};
use control_store::CallEnd;
use tonic::Code;

use crate::context::ServiceContext;

/// A call on its way. When its caller goes away it is recorded as cancelled.
#[derive(Debug)]
pub struct AdmittedCall {
    pub(crate) core: Arc<ServiceContext>,
    pub(crate) record: Option<Arc<AuditedCall>>,
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        if let Some(end) = self.end(Code::Cancelled) {
            self.core.audit.try_put(end);
        }
    }
}

impl AdmittedCall {
    /// The permit for what this call changes, or would change if it is no trial.
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

    /// The end of the call, once.
    pub(crate) fn end(&mut self, code: Code) -> Option<CallEnd> {
        Some(CallEnd {
            call: self.record.take()?,
            code: code.into(),
            reason: None,
            time: self.core.now(),
        })
    }
}
