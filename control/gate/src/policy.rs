//! Site policies at this node: compiled once per change, evaluated for each call of the methods
//! they name. Calls of other methods cost one lookup.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use control_authz::{
    Decided, Denied, Permit, Principal, authorise_method, is_judged, is_of_platform,
};
use control_policy::{CallFacts, JudgedCall, Moment, Relation, Resource, SitePolicies, SitePolicy};
use control_state::{Machine, Policy, Tables};
use prost_reflect::{DynamicMessage, Value};
use proto_public::{Method, Scope, json};
use proto_types::Timestamp;

use crate::directory::StateDirectory;

/// The policies of a node.
#[derive(Debug, Default)]
pub struct Policies(RwLock<Arc<Loaded>>);

/// The compiled policies and their stored sources.
#[derive(Debug, Default)]
struct Loaded {
    stored: Vec<Arc<Policy>>,
    site: Arc<SitePolicies>,
}

/// Policies that this node has not compiled yet.
#[derive(Debug)]
pub struct Stale(Vec<Arc<Policy>>);

impl Policies {
    /// The policies that judge a method. `None` means that the role table alone decides.
    ///
    /// # Errors
    /// [`Stale`] if they must be compiled first with [`Policies::compile`].
    pub fn of(&self, tables: &Tables, method: &Method) -> Result<Option<Arc<SitePolicies>>, Stale> {
        let table = tables.table::<Policy>();
        if table.is_empty() || !is_judged(method) {
            return Ok(None);
        }
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut stored = table.values().map(|slot| &slot.value);
        // Pointers are enough: the state replaces the `Arc` of an object that changes.
        let same = |policy: &Arc<Policy>| stored.next().is_some_and(|is| Arc::ptr_eq(is, policy));
        if loaded.stored.len() != table.len() || !loaded.stored.iter().all(same) {
            return Err(Stale(tables.all::<Policy>().cloned().collect()));
        }
        let judges = loaded.site.judges(method);
        Ok(judges.then(|| Arc::clone(&loaded.site)))
    }

    /// Compiles the policies that changed.
    pub fn compile(&self, Stale(stored): Stale) {
        // No lock is held while compiling: concurrent calls compile the same policies rather than
        // wait, and the last to finish wins.
        let loaded = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let known = |policy: &Arc<Policy>| {
            let mut pairs = loaded.stored.iter().zip(loaded.site.members());
            let known = pairs.find(|(is, _)| is.source == policy.source && is.name == policy.name);
            known.map(|(_, member)| member.clone())
        };
        let member = |policy: &Arc<Policy>| {
            known(policy).unwrap_or_else(|| {
                let member = SitePolicy::stored(&policy.name, &policy.source, &policy.methods);
                if let Some(fault) = member.fault() {
                    tracing::error!(
                        policy = policy.name,
                        error = fault,
                        "a policy does not compile: it denies every call that it names"
                    );
                }
                member
            })
        };
        let site = Arc::new(SitePolicies::new(stored.iter().map(member).collect()));
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(Loaded { stored, site });
    }

    /// The policies that judge a method; compiles them inline if they are stale.
    fn now(&self, tables: &Tables, method: &Method) -> Option<Arc<SitePolicies>> {
        match self.of(tables, method) {
            Ok(site) => site,
            Err(stale) => {
                self.compile(stale);
                self.of(tables, method).ok().flatten()
            }
        }
    }

    /// A policy as compiled on this node; `None` before it was.
    pub fn member(&self, policy: &Arc<Policy>) -> Option<SitePolicy> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut pairs = loaded.stored.iter().zip(loaded.site.members());
        let found = pairs.find(|(is, _)| Arc::ptr_eq(is, policy));
        found.map(|(_, member)| member.clone())
    }
}

/// Inputs of an authorisation that is repeated, for streams and long calls.
#[derive(Debug, Clone, Copy)]
pub struct Looked<'a> {
    /// The policies of the node.
    pub policies: &'a Policies,
    /// The state.
    pub tables: &'a Tables,
    /// Login of the provider's own tenant.
    pub provider: &'a str,
    /// The caller.
    pub who: &'a Principal,
    /// Source address of the call.
    pub address: Option<IpAddr>,
    /// The partition that the token is bound to.
    pub partition: Option<&'a str>,
    /// Time of the decision.
    pub now: Timestamp,
}

impl Looked<'_> {
    /// Decides by role table and policies. Policies see `request`.
    ///
    /// # Errors
    /// The refusal of the table or of a policy.
    pub fn decide(
        &self,
        path: &str,
        subject: Option<&str>,
        request: Option<&serde_json::Value>,
    ) -> Result<Permit, Denied> {
        let directory = StateDirectory {
            tables: self.tables,
            provider: self.provider,
        };
        let method = proto_public::method(path);
        let method = method.ok_or_else(|| Denied::UnknownMethod(path.to_owned()))?;
        let table = authorise_method(method, self.who, &directory, subject);
        let Some(site) = self.policies.now(self.tables, method) else {
            return table;
        };
        let judged = PolicyContext {
            site,
            relation: Relation::of(method, self.who, &directory, subject),
            resource: None,
            is_of_platform: is_of_platform(self.who, &directory),
        };
        // A read beside the stream's own method has no request of its own. Policies get one that
        // names the subject, as the read would.
        let plain = subject
            .zip(method.scope.subject_field())
            .map(|(subject, field)| serde_json::json!({ field: subject }));
        judged.decide(
            &PolicyInput {
                method,
                who: self.who,
                subject,
                address: self.address,
                partition: self.partition,
                request: request.or(plain.as_ref()),
                now: self.now,
            },
            table,
        )
    }
}

/// The subject and the message of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestView<'a> {
    /// Login or project id that the method is about.
    pub subject: Option<&'a str>,
    pub message: &'a DynamicMessage,
}

/// Facts from the state about a call that policies judge.
#[derive(Debug)]
pub(crate) struct PolicyContext {
    pub site: Arc<SitePolicies>,
    relation: Relation,
    resource: Option<Resource>,
    is_of_platform: bool,
}

/// Facts about a call that policies judge, from the call itself.
#[derive(Debug)]
pub(crate) struct PolicyInput<'a> {
    pub method: &'static Method,
    pub who: &'a Principal,
    pub subject: Option<&'a str>,
    pub address: Option<IpAddr>,
    pub partition: Option<&'a str>,
    pub request: Option<&'a serde_json::Value>,
    pub now: Timestamp,
}

impl PolicyContext {
    /// Reads the facts from the state.
    pub(crate) fn gather(
        site: Arc<SitePolicies>,
        method: &Method,
        who: &Principal,
        directory: &StateDirectory<'_>,
        request: RequestView<'_>,
    ) -> Self {
        let RequestView { subject, message } = request;
        Self {
            site,
            relation: Relation::of(method, who, directory, subject),
            resource: machine(directory.tables, method, subject, message),
            is_of_platform: is_of_platform(who, directory),
        }
    }

    /// Applies the policies to the decision of the role table.
    ///
    /// # Errors
    /// The refusal of the table or of a policy.
    pub(crate) fn decide(
        &self,
        input: &PolicyInput<'_>,
        table: Result<Permit, Denied>,
    ) -> Result<Permit, Denied> {
        let facts = CallFacts {
            method: input.method,
            who: input.who,
            is_of_platform: self.is_of_platform,
            subject: input.subject,
            relation: &self.relation,
            table: &table,
            address: input.address,
            partition: input.partition,
            request: input.request,
            resource: self.resource.as_ref(),
            now: Moment { ms: input.now.ms() },
        };
        let Some(call) = JudgedCall::new(&self.site, &facts) else {
            return table;
        };
        let decided = Decided {
            method: input.method,
            who: input.who,
            is_of_platform: self.is_of_platform,
            subject: input.subject,
            table,
        };
        decided.under(&call).inspect_err(|denied| {
            if let Denied::Unjudged {
                path,
                policy,
                reason,
            } = denied
            {
                tracing::warn!(method = path, policy, error = reason, "a policy failed");
            }
        })
    }
}

/// A request without its secrets, for policies.
pub(crate) fn request(message: &DynamicMessage) -> Option<serde_json::Value> {
    let printed = json::print(message).ok()?;
    let mut value = serde_json::from_slice(&printed).ok()?;
    crate::audit::redact(&mut value);
    Some(value)
}

/// The machine that a request names, if it is free or allocated to the request's project; for admin
/// methods, any machine. Policies must not learn about machines of other projects.
fn machine(
    tables: &Tables,
    method: &Method,
    subject: Option<&str>,
    message: &DynamicMessage,
) -> Option<Resource> {
    if !method.service.ends_with(".MachineService") {
        return None;
    }
    let uuid = message.get_field_by_name("uuid")?;
    let Value::String(uuid) = uuid.as_ref() else {
        return None;
    };
    let machine = tables.get::<Machine>(&uuid.parse().ok()?)?;
    let project = machine
        .allocation
        .as_ref()
        .map(|allocation| allocation.project.to_string());
    let is_seen = match method.scope {
        Scope::Admin(_) => true,
        _ => project.is_none() || project.as_deref() == subject,
    };
    is_seen.then(|| Resource {
        kind: "machine",
        id: machine.id.to_string(),
        partition: machine.partition.as_ref().map(ToString::to_string),
        size: machine.size.as_ref().map(ToString::to_string),
        project,
        labels: machine.meta.labels.clone(),
    })
}
