//! Records of the calls that the contract wants audited.

use std::sync::Arc;

use control_authz::{AuditedCall, Recorded};
use control_store::CallEnd;
use proto_link::{Audit, LinkStatus, MethodSpec, Peer};
use uuid::Uuid;

use crate::access;
use crate::serve::Shared;

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Call {
    /// What is recorded of it, where it is.
    audited: Option<Arc<AuditedCall>>,
    is_stranger: bool,
}

impl Shared {
    /// A call that came. `what` says whom it is about, without secrets.
    pub(crate) fn begin(&self, method: &MethodSpec, peer: &Peer, what: String) -> Call {
        let audited = AuditedCall {
            id: Uuid::now_v7().to_string(),
            time_ms: self.store.now().ms(),
            user: access::actor(peer),
            tenant: String::new(),
            project: None,
            method: method.path.to_owned(),
            body: (!what.is_empty()).then_some(what),
            rule: None,
            source_ip: peer.remote().ip().to_string(),
            recorded: Recorded::default(),
        };
        Call {
            audited: (method.audit == Audit::Always).then(|| Arc::new(audited)),
            is_stranger: peer.id().is_none(),
        }
    }

    /// The same parts for what this call changes: its record goes with the change.
    pub(crate) fn within(&self, call: &Call) -> Self {
        let mut shared = self.clone();
        if let Some(call) = &call.audited {
            shared.pki = shared.pki.within(Arc::clone(call));
            shared.call = Some(Arc::clone(call));
        }
        shared
    }

    /// Records how a call ended.
    pub(crate) async fn finish<T>(&self, call: Call, result: &Result<T, LinkStatus>) {
        let refusal = result.as_ref().err();
        // Refusing strangers must not cost a write: the log has them.
        if call.is_stranger && refusal.is_some() {
            return;
        }
        if let Some(call) = call.audited {
            let end = CallEnd {
                call,
                code: refusal.map_or(0, |refusal| i32::from(refusal.code() as u8)),
                reason: refusal.map(ToString::to_string),
                time: self.store.now(),
            };
            self.trail.put(end).await;
        }
    }
}
