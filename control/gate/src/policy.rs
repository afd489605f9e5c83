//! Site policies at this node: compiled once for each change, asked about each call that they
//! name. Where none names a method, its calls cost a look at whether there are any.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use control_authz::{
    Decided, Denied, Permit, Principal, authorise_method, is_judged, is_of_platform,
};
use control_policy::{Call, Facts, Member, Moment, Relation, Resource, Site};
use control_state::{Machine, Policy, Tables};
use prost_reflect::{DynamicMessage, Value};
use proto_public::{Method, Scope, json};
use proto_types::Timestamp;

use crate::directory::StateDirectory;

/// The policies of a node.
#[derive(Debug, Default)]
pub struct Policies(RwLock<Arc<Loaded>>);

/// What was compiled, and from what.
#[derive(Debug, Default)]
struct Loaded {
    stored: Vec<Arc<Policy>>,
    site: Arc<Site>,
}

/// Policies that this node has not compiled yet.
#[derive(Debug)]
pub struct Stale(Vec<Arc<Policy>>);

impl Policies {
    /// The policies that judge a method; none where the table alone does.
    ///
    /// # Errors
    /// When they have to be compiled first: [`Policies::compile`].
    pub fn of(&self, tables: &Tables, method: &Method) -> Result<Option<Arc<Site>>, Stale> {
        let table = tables.table::<Policy>();
        if table.is_empty() || !is_judged(method) {
            return Ok(None);
        }
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut stored = table.values().map(|slot| &slot.value);
        let same = |it: &Arc<Policy>| stored.next().is_some_and(|is| Arc::ptr_eq(is, it));
        if loaded.stored.len() != table.len() || !loaded.stored.iter().all(same) {
            return Err(Stale(tables.all::<Policy>().cloned().collect()));
        }
        let judges = loaded.site.judges(method);
        Ok(judges.then(|| Arc::clone(&loaded.site)))
    }

    /// Compiles what has changed.
    pub fn compile(&self, Stale(stored): Stale) {
        // Nobody waits meanwhile: whoever needs them now compiles them as well.
        let loaded = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let known = |it: &Arc<Policy>| {
            let mut pairs = loaded.stored.iter().zip(loaded.site.members());
            let known = pairs.find(|(is, _)| is.source == it.source && is.name == it.name);
            known.map(|(_, member)| member.clone())
        };
        let member = |it: &Arc<Policy>| {
            known(it).unwrap_or_else(|| {
                let member = Member::stored(&it.name, &it.source, &it.methods);
                if let Some(fault) = member.fault() {
                    tracing::error!(
                        policy = it.name,
                        error = fault,
                        "a policy refuses its calls"
                    );
                }
                member
            })
        };
        let site = Arc::new(Site::new(stored.iter().map(member).collect()));
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(Loaded { stored, site });
    }

    /// The policies that judge a method, compiled here and now if they must be.
    fn now(&self, tables: &Tables, method: &Method) -> Option<Arc<Site>> {
        match self.of(tables, method) {
            Ok(site) => site,
            Err(stale) => {
                self.compile(stale);
                self.of(tables, method).ok().flatten()
            }
        }
    }

    /// A policy as this node has it.
    pub fn member(&self, policy: &Arc<Policy>) -> Option<Member> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut pairs = loaded.stored.iter().zip(loaded.site.members());
        let found = pairs.find(|(is, _)| Arc::ptr_eq(is, policy));
        found.map(|(_, member)| member.clone())
    }
}

/// What a call is decided by, as often as it is looked at: of a stream again and again.
#[derive(Debug, Clone, Copy)]
pub struct Looked<'a> {
    /// The policies of the node.
    pub policies: &'a Policies,
    /// The state.
    pub tables: &'a Tables,
    /// Login of the provider's own tenant.
    pub provider: &'a str,
    /// Who calls.
    pub who: &'a Principal,
    /// From where.
    pub address: Option<IpAddr>,
    /// The partition that the token is bound to.
    pub partition: Option<&'a str>,
    /// When.
    pub now: Timestamp,
}

impl Looked<'_> {
    /// Decides by table and policies; `request` is what the policies see of it.
    ///
    /// # Errors
    /// The refusal of either.
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
        let judged = Judged {
            site,
            relation: Relation::of(method, self.who, &directory, subject),
            resource: None,
            is_of_platform: is_of_platform(self.who, &directory),
        };
        // What a read beside the stream's own method would ask: whom it is about.
        let plain = subject
            .zip(method.scope.subject_field())
            .map(|(subject, field)| serde_json::json!({ field: subject }));
        judged.decide(
            &Asked {
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

/// What the state says of a call that policies judge.
#[derive(Debug)]
pub(crate) struct Judged {
    pub site: Arc<Site>,
    relation: Relation,
    resource: Option<Resource>,
    is_of_platform: bool,
}

/// What the call itself says.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub method: &'static Method,
    pub who: &'a Principal,
    pub subject: Option<&'a str>,
    pub address: Option<IpAddr>,
    pub partition: Option<&'a str>,
    pub request: Option<&'a serde_json::Value>,
    pub now: Timestamp,
}

impl Judged {
    /// Gathers what policies need of the state.
    pub(crate) fn gather(
        site: Arc<Site>,
        method: &Method,
        who: &Principal,
        directory: &StateDirectory<'_>,
        (subject, message): (Option<&str>, &DynamicMessage),
    ) -> Self {
        Self {
            site,
            relation: Relation::of(method, who, directory, subject),
            resource: machine(directory.tables, method, subject, message),
            is_of_platform: is_of_platform(who, directory),
        }
    }

    /// What comes of the table's decision.
    ///
    /// # Errors
    /// The refusal of the table or of a policy.
    pub(crate) fn decide(
        &self,
        asked: &Asked<'_>,
        table: Result<Permit, Denied>,
    ) -> Result<Permit, Denied> {
        let facts = Facts {
            method: asked.method,
            who: asked.who,
            is_of_platform: self.is_of_platform,
            subject: asked.subject,
            relation: &self.relation,
            table: &table,
            address: asked.address,
            partition: asked.partition,
            request: asked.request,
            resource: self.resource.as_ref(),
            now: Moment { ms: asked.now.ms() },
        };
        let Some(call) = Call::new(&self.site, &facts) else {
            return table;
        };
        let decided = Decided {
            method: asked.method,
            who: asked.who,
            is_of_platform: self.is_of_platform,
            subject: asked.subject,
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

/// The machine that a request names: one of the project that it is about, or one that nobody has.
/// To administrators, any.
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
    let project = machine.allocation.as_ref().map(|it| it.project.to_string());
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
