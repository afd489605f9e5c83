//! Records of the calls that the contract wants audited.
//!
//! Invariant: an audited call has one record, however it ends: with an answer, with a refusal, with
//! a request that cannot be read, or with a caller that leaves.

use std::future::Future;
use std::sync::Arc;

use control_authz::{AuditedCall, Recorded};
use control_store::{AuditTrail, CallEnd, Store};
use proto_link::{Audit, LinkStatus, MethodSpec, Peer};
use uuid::Uuid;

use crate::access;
use crate::parts::GatewayParts;

/// Most characters of the text that says what a call is about; the rest is left out. Some of it
/// comes from the request as it is.
const ABOUT_CHARS_MAX: usize = 256;
/// Most characters of the reason of a refusal, which may quote the request.
const REASON_CHARS_MAX: usize = 512;
/// `CANCELLED` of `google.rpc.Code`.
const CANCELLED: i32 = 1;

/// The record of a call on its way. Dropped before its end, it records that the caller left.
struct CallRecord {
    trail: AuditTrail,
    store: Store,
    /// `None` once the end is recorded, and for a call that is not recorded.
    audited: Option<Arc<AuditedCall>>,
    is_stranger: bool,
}

impl CallRecord {
    fn end(&mut self, code: i32, reason: Option<String>) -> Option<CallEnd> {
        let call = self.audited.take()?;
        // Refusing strangers must not cost a write: the log has them.
        let is_recorded = code == 0 || !self.is_stranger;
        is_recorded.then(|| CallEnd {
            call,
            code,
            reason,
            time: self.store.now(),
        })
    }

    async fn finish<T>(mut self, result: &Result<T, LinkStatus>) {
        let refusal = result.as_ref().err();
        let code = refusal.map_or(0, |refusal| i32::from(refusal.code() as u8));
        let reason = refusal.map(|refusal| clipped(&refusal.to_string(), REASON_CHARS_MAX));
        if let Some(end) = self.end(code, reason) {
            self.trail.put(end).await;
        }
    }
}

fn clipped(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if let Some(end) = self.end(CANCELLED, None) {
            self.trail.try_put(end);
        }
    }
}

impl GatewayParts {
    /// Does the work of a call and records its end. `about` says what the call is about, without
    /// secrets; `work` gets the parts whose changes carry the record along. Everything that can
    /// refuse the request belongs into `work`.
    pub(crate) async fn audited<T, F>(
        &self,
        method: &MethodSpec,
        peer: &Peer,
        about: String,
        work: impl FnOnce(Self) -> F,
    ) -> Result<T, LinkStatus>
    where
        F: Future<Output = Result<T, LinkStatus>>,
    {
        let record = self.begin(method, peer, &about);
        let result = work(self.within(record.audited.as_ref())).await;
        record.finish(&result).await;
        result
    }

    fn begin(&self, method: &MethodSpec, peer: &Peer, about: &str) -> CallRecord {
        let about = clipped(about, ABOUT_CHARS_MAX);
        let audited = AuditedCall {
            id: Uuid::now_v7().to_string(),
            time_ms: self.store.now().ms(),
            user: access::actor(peer),
            tenant: String::new(),
            project: None,
            method: method.path.to_owned(),
            body: (!about.is_empty()).then_some(about),
            rule: None,
            source_ip: peer.remote().ip().to_string(),
            recorded: Recorded::default(),
        };
        CallRecord {
            trail: self.trail.clone(),
            store: self.store.clone(),
            audited: (method.audit == Audit::Always).then(|| Arc::new(audited)),
            is_stranger: peer.id().is_none(),
        }
    }

    /// The same parts for what a call changes: its record goes with the change.
    fn within(&self, call: Option<&Arc<AuditedCall>>) -> Self {
        let mut shared = self.clone();
        if let Some(call) = call {
            shared.pki = shared.pki.within(Arc::clone(call));
            shared.call = Some(Arc::clone(call));
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use control_state::AuditEntry;
    use control_store::StoreConfig;
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn call(id: &str) -> Arc<AuditedCall> {
        Arc::new(AuditedCall {
            id: id.to_owned(),
            time_ms: 1,
            user: "spiffe://m/partition/p1/core/leaf1".to_owned(),
            tenant: String::new(),
            project: None,
            method: "/m/M".to_owned(),
            body: None,
            rule: None,
            source_ip: String::new(),
            recorded: Recorded::default(),
        })
    }

    #[tokio::test]
    async fn a_call_whose_caller_leaves_is_on_record_unless_it_is_a_strangers() {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig::new(dir.path(), 1, "test");
        let store = Store::open(config).await.unwrap();
        let (trail, writer) = AuditTrail::new(store.clone());
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run(stop.clone()));
        for (id, is_stranger) in [("agents", false), ("strangers", true)] {
            drop(CallRecord {
                trail: trail.clone(),
                store: store.clone(),
                audited: Some(call(id)),
                is_stranger,
            });
        }
        stop.cancel();
        tasks.join_all().await;
        let ends = store.read_local(|tables| {
            let entries = tables.all::<AuditEntry>();
            let ends = entries.filter_map(|entry| Some((entry.id.clone(), entry.result_code?)));
            ends.collect::<Vec<_>>()
        });
        assert_eq!(ends.unwrap(), [("agents".to_owned(), CANCELLED)]);
        store.shutdown().await;
    }
}
