//! One call of a facade, from its authentication to its audit record.

use std::sync::Arc;

use control_authz::{AuditedCall, FacadeMethod, Recorded, permit_facade};
use control_state::bounds::clip;
use control_state::{Op, Reply, StateError, Tables};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::admitted_call::AdmittedCall;
use crate::audit::redacted;
use crate::bearer::Bearer;
use crate::context::ServiceContext;
use crate::refusal::{of_denied, of_state, of_store};

/// Longest path and query in an audit record, bytes; a longer one is cut.
const TARGET_BYTES_MAX: usize = 2048;

/// A call of a facade as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct FacadeRequest<'a> {
    /// The method of the facade's table.
    pub method: &'static FacadeMethod,
    /// The project that the token stands for. `None` means the whole site.
    pub project: Option<&'a str>,
    /// Path and query, for the audit record.
    pub target: &'a str,
    /// The request's body without the secrets that only the facade can tell; `Null` if it has none.
    pub body: &'a serde_json::Value,
}

/// A call in progress. Dropped before [`FacadeCall::finish`] it is recorded as cancelled.
#[derive(Debug)]
pub struct FacadeCall {
    ticket: AdmittedCall,
    bearer: Bearer,
    method: &'static FacadeMethod,
    project: Option<String>,
}

impl FacadeCall {
    /// Begins a call. From here on it is recorded, however it ends, if its method is audited.
    pub fn begin(core: &Arc<ServiceContext>, bearer: &Bearer, request: FacadeRequest<'_>) -> Self {
        let record = request.method.audited.then(|| {
            Arc::new(AuditedCall {
                id: Uuid::now_v7().to_string(),
                time_ms: core.now().ms(),
                user: bearer.principal.user.to_string(),
                tenant: String::new(),
                project: request.project.map(str::to_owned),
                method: request.method.path.to_owned(),
                body: Some(audited_body(request)),
                rule: None,
                source_ip: bearer
                    .address
                    .map(|address| address.to_string())
                    .unwrap_or_default(),
                recorded: Recorded::default(),
            })
        });
        Self {
            ticket: AdmittedCall {
                core: Arc::clone(core),
                record,
            },
            bearer: bearer.clone(),
            method: request.method,
            project: request.project.map(str::to_owned),
        }
    }

    /// Linearizable read. The first one of a call reuses the read that found the token.
    ///
    /// # Errors
    /// The refusal of the closure, or `unavailable`.
    pub async fn read<T>(
        &self,
        read: impl FnOnce(&Tables) -> Result<T, StateError>,
    ) -> Result<T, Status> {
        let core = &self.ticket.core;
        if !self.bearer.is_fresh() {
            return core.read_latest(read).await;
        }
        let read = core.store.read_local(read);
        read.map_err(of_store)?.map_err(of_state)
    }

    /// Proposes a change that the facade's policy permits, and returns its result once it is applied.
    ///
    /// # Errors
    /// The state's refusal, or `unavailable`.
    pub async fn propose(&self, op: impl Into<Op>) -> Result<Reply, Status> {
        let who = &self.bearer.principal;
        let permit = permit_facade(self.method, who, self.project.as_deref()).map_err(of_denied)?;
        let caller = self.bearer.caller(self.ticket.mark(permit, false));
        self.ticket.core.propose(&caller, op).await
    }

    /// Records how the call ended.
    pub async fn finish(mut self, code: Code) {
        if let Some(end) = self.ticket.end(code) {
            self.ticket.core.audit.put(end).await;
        }
    }
}

/// The request as JSON without secrets: the path names the object, which the body does not.
fn audited_body(request: FacadeRequest<'_>) -> String {
    let body = redacted(request.body.to_string().as_bytes());
    let target = serde_json::Value::from(clip(request.target, TARGET_BYTES_MAX));
    format!("{{\"path\":{target},\"body\":{body}}}")
}
