//! Authenticates, authorises and validates each call once, before its handler runs.

use std::net::SocketAddr;
use std::sync::Arc;

use control_authz::{AuditedCall, Denied, Permit, Principal, Recorded, authorise_method};
use control_front::CallStats;
use control_front::{Call, Gate, Respelled};
use control_state::ErrorCode;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use prost::Message;
use prost_reflect::DynamicMessage;
use proto_public::{Method, Scope, json};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::admitted_call::AdmittedCall;
use crate::arrival::{Arrived, arrived, subject};
use crate::caller::{Caller, PARTITION_LABEL};
use crate::context::ServiceContext;
use crate::directory::StateDirectory;
use crate::dry_run::can_be_tried;
use crate::filing::{Filing, RecordPlace};
use crate::freshness::Freshness;
use crate::policy_context::{PolicyContext, PolicyInput, RequestView, request};
use crate::principal::principal;
use crate::refusal::{of_denied, of_store, refused, too_often};
use crate::stored_token::{good_token, share_of};
use crate::token::Claims;
use crate::wall_clock::now_s;

/// Refusal text of the per-token rate limit.
const RATE_LIMITED: &str = "the token makes more calls than it may (api.calls_per_minute)";

/// The gate of the public API.
#[derive(Debug, Clone)]
pub struct ApiGate {
    core: Arc<ServiceContext>,
    stats: CallStats,
}

/// The caller and the verdict on its call, from one read of the state.
struct CallDecision {
    who: Principal,
    /// The partition that the token is bound to.
    partition: Option<String>,
    permit: Result<Permit, Denied>,
    /// Selects the audit trail that the record goes to.
    files: Filing,
    /// Input of the site policies; `None` if no policy judges this method.
    judged: Option<PolicyContext>,
}

impl ApiGate {
    /// A gate over the state.
    pub fn new(core: Arc<ServiceContext>) -> Self {
        Self {
            core,
            stats: CallStats::default(),
        }
    }

    /// Counts refusals in `stats`.
    #[must_use]
    pub fn with_stats(self, stats: CallStats) -> Self {
        Self { stats, ..self }
    }

    /// The claims of the bearer token, if there is one.
    fn claims(&self, headers: &HeaderMap) -> Result<Option<Claims>, Status> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(None);
        };
        let bad = || {
            self.stats.refused("token");
            refused(ErrorCode::Unauthenticated, "the token is not valid")
        };
        let text = header.to_str().map_err(|_| bad())?;
        let (scheme, token) = text.split_once(' ').ok_or_else(bad)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(bad());
        }
        let claims = self
            .core
            .issuer
            .verify(token.trim(), now_s())
            .map_err(|error| {
                // The log alone gets the reason: an attacker would learn from it.
                tracing::debug!(error = %error, "a token was refused");
                bad()
            })?;
        Ok(Some(claims))
    }

    /// Resolves the caller and its permit from the current state.
    async fn authorise(
        &self,
        call: &Call<'_>,
        claims: Option<Claims>,
        request: RequestView<'_>,
    ) -> Result<CallDecision, Status> {
        let core = &self.core;
        let method = call.method;
        let decide = |tables: &control_state::Tables| {
            let site = core.policies.of(tables, method)?;
            let directory = StateDirectory {
                tables,
                provider: &core.provider,
            };
            let Some((who, partition)) = self.caller(&directory, claims.as_ref()) else {
                return Ok(None);
            };
            let subject = request.subject;
            let permit = authorise_method(method, &who, &directory, subject);
            let gather = |site| PolicyContext::gather(site, method, &who, &directory, request);
            Ok(Some(CallDecision {
                judged: site.map(gather),
                files: Filing::of(&directory, &who, method, subject),
                who,
                partition,
                permit,
            }))
        };
        // One linearizable read gives token, roles and policies of the same revision. Two reads
        // could combine an old role with a new policy and let a call through that neither state
        // allows.
        loop {
            match core.store.read(decide).await.map_err(of_store)? {
                Ok(decided) => {
                    return decided.ok_or_else(|| {
                        self.stats.refused("token");
                        revoked()
                    });
                }
                // Compiling takes long, so it runs outside the read lock, once per policy change.
                Err(stale) => core.policies.compile(stale),
            }
        }
    }

    /// Counts the call against the rate limit of its caller.
    fn limit_rate(&self, call: &Call<'_>, who: &Principal) -> Result<(), Status> {
        let address = call.peer.map(|peer| peer.ip());
        let taken = self.core.rates.take(who, address, self.core.now());
        taken.map_err(|wait_ms| {
            self.stats.refused("rate");
            too_often(RATE_LIMITED, wait_ms)
        })
    }

    /// The rule of a site policy that decided the call, for its record; counts a refusal. `None`
    /// means that no policy's rule decided it.
    fn deciding_rule<'a>(&self, permit: &'a Result<Permit, Denied>) -> Option<&'a str> {
        match permit {
            Ok(permit) => permit.rule(),
            Err(denied) => {
                self.stats.refused(denied.reason());
                denied.rule()
            }
        }
    }

    /// Applies the site policies to the decision of the role table.
    fn judge(&self, call: &Call<'_>, decided: CallDecision, view: RequestView<'_>) -> CallDecision {
        let Some(judged) = &decided.judged else {
            return decided;
        };
        let wants = judged.site.wants_request(call.method);
        // Printing the request as JSON costs more than most decisions, so only policies that read
        // it pay for it.
        let request = wants.then(|| request(view.message)).flatten();
        let input = PolicyInput {
            method: call.method,
            who: &decided.who,
            subject: view.subject,
            address: call.peer.map(|peer| peer.ip()),
            partition: decided.partition.as_deref(),
            request: request.as_ref(),
            now: self.core.now(),
        };
        CallDecision {
            permit: judged.decide(&input, decided.permit),
            files: decided.files,
            judged: None,
            who: decided.who,
            partition: decided.partition,
        }
    }

    /// The caller, and the partition that its token is bound to. `None` means that the token has
    /// expired or was revoked.
    fn caller(
        &self,
        directory: &StateDirectory<'_>,
        claims: Option<&Claims>,
    ) -> Option<(Principal, Option<String>)> {
        let Some(claims) = claims else {
            return Some((Principal::anonymous(), None));
        };
        let now = self.core.now();
        let good = good_token(directory.tables, claims, now)?;
        self.core.uses.note(good, now);
        let partition = good.meta.labels.get(PARTITION_LABEL).cloned();
        Some((principal(good, directory), partition))
    }

    /// The audit record of the call; `None` for methods that are not audited and for callers
    /// without a token.
    fn record(
        &self,
        call: &Call<'_>,
        who: &Principal,
        place: RecordPlace<'_>,
        message: &DynamicMessage,
        rule: Option<&str>,
    ) -> Option<Arc<AuditedCall>> {
        if !call.method.audited || who.user.is_empty() {
            return None;
        }
        Some(Arc::new(AuditedCall {
            id: Uuid::now_v7().to_string(),
            time_ms: self.core.now().ms(),
            user: who.user.to_string(),
            tenant: place.tenant.to_owned(),
            project: place.project.map(str::to_owned),
            method: call.method.path.clone(),
            body: json::print(message)
                .ok()
                .map(|json| crate::audit::redacted(&json))
                .map(|json| match call.trial {
                    true => format!("{{\"dryRun\":{json}}}"),
                    false => json,
                }),
            rule: rule.map(str::to_owned),
            source_ip: call
                .peer
                .map(|peer: SocketAddr| peer.ip().to_string())
                .unwrap_or_default(),
            recorded: Recorded::default(),
        }))
    }
}

#[tonic::async_trait]
impl Gate for ApiGate {
    type Ticket = AdmittedCall;

    fn screen(
        &self,
        method: &'static Method,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<str>>, Status> {
        let Some(claims) = self.claims(headers)? else {
            if method.scope == Scope::Public {
                return Ok(None);
            }
            self.stats.refused(Denied::Unauthenticated.reason());
            return Err(of_denied(Denied::Unauthenticated));
        };
        // A local read, which may be stale: no round trip before the body is read. A token that
        // this node has not applied yet shares the quota of anonymous callers; `admit` decides for
        // certain.
        let now = self.core.now();
        let share = |tables: &control_state::Tables| {
            let token = good_token(tables, &claims, now)?;
            Some(share_of(tables, &self.core.provider, token))
        };
        let share = self.core.store.read_local(share).ok().flatten();
        Ok(share.map(Into::into))
    }

    async fn admit(&self, call: Call<'_>) -> Result<(Extensions, AdmittedCall), Status> {
        let claims = self.claims(call.headers)?;
        let Arrived {
            message,
            valid,
            is_respelled,
        } = arrived(&call)?;
        let subject = subject(&call, &message);
        let view = RequestView {
            subject: subject.as_deref(),
            message: &message,
        };
        let decided = self.authorise(&call, claims, view).await?;
        // The rate limit comes before policies and validation, so that refused calls are counted
        // too: a loop of denied calls is bounded like any other.
        self.limit_rate(&call, &decided.who)?;
        let CallDecision {
            who,
            partition,
            permit,
            files,
            judged: _,
        } = self.judge(&call, decided, view);
        let rule = self.deciding_rule(&permit);
        let place = files.place(permit.is_ok(), call.method, subject.as_deref(), &who);
        let record = self.record(&call, &who, place, &message, rule);
        // The ticket exists before the verdict: a refused call, too, leaves its audit record, and a
        // caller that disconnects during the call is recorded as cancelled when the ticket drops.
        let ticket = AdmittedCall {
            core: Arc::clone(&self.core),
            record,
        };
        let permit = match verdict(&call, permit, valid) {
            Ok(permit) => permit,
            Err(status) => {
                self.finish(ticket, status.code()).await;
                return Err(status);
            }
        };
        let mut extensions = Extensions::new();
        // The handler must see the ids that were authorised, not another spelling of them.
        if is_respelled {
            extensions.insert(Respelled(message.encode_to_vec().into()));
        }
        let is_stream = call.method.client_streaming || call.method.server_streaming;
        let is_decided_again = is_decided_again(call.method);
        extensions.insert(Caller {
            permit: ticket.mark(permit, call.trial),
            user: who.user.to_string(),
            principal: Arc::new(who),
            partition,
            address: call.peer.map(|peer| peer.ip()),
            request: is_decided_again
                .then(|| request(&message).map(Arc::new))
                .flatten(),
            freshness: Freshness::of_call(is_stream),
        });
        Ok((extensions, ticket))
    }

    async fn finish(&self, mut ticket: AdmittedCall, code: Code) {
        if let Some(end) = ticket.end(code) {
            self.core.audit.put(end).await;
        }
    }
}

/// Unary methods that may take minutes. They authorise again before they write: see
/// [`ServiceContext::still_allows`].
const LONG_METHODS: [&str; 2] = [
    "/metalstack.admin.v2.ImageService/Create",
    "/metalstack.admin.v2.ImageService/Update",
];

/// `true` if the handler authorises again after the call was admitted.
fn is_decided_again(method: &Method) -> bool {
    method.server_streaming || LONG_METHODS.contains(&method.path.as_str())
}

/// Refuses a call for the first of: its rights, its content, a dry run that is not possible. Rights
/// come first, so that a caller without them learns nothing from validation errors.
fn verdict(
    call: &Call<'_>,
    permit: Result<Permit, Denied>,
    valid: Result<(), Status>,
) -> Result<Permit, Status> {
    let permit = permit.map_err(of_denied)?;
    valid?;
    if call.trial {
        can_be_tried(call.method)?;
    }
    Ok(permit)
}

fn revoked() -> Status {
    refused(ErrorCode::TokenRevoked, "the token is not valid any more")
}
