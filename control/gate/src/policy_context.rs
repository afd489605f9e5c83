//! Facts about a call that site policies judge, and the decision under them.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::{Decided, Denied, Permit, Principal, is_of_platform};
use control_policy::{CallFacts, JudgedCall, Moment, Relation, Resource, SitePolicies};
use control_state::{Machine, MachinePool, Tables, TenureRelation};
use prost_reflect::{DynamicMessage, Value};
use proto_public::{Method, Scope, json};
use proto_types::{ProjectId, Timestamp};

use crate::directory::StateDirectory;

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
    pub relation: Relation,
    /// The machine that the request names. `None` means that policies see no machine.
    pub resource: Option<Resource>,
    pub is_of_platform: bool,
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
        let named = named_machine(directory.tables, method, message);
        let mut relation = Relation::of(method, who, directory, subject);
        let project = subject.filter(|_| matches!(method.scope, Scope::Project(_)));
        let project = project.and_then(|project| project.parse::<ProjectId>().ok());
        let tenure = project.and_then(|project| named?.tenure.relation(project));
        relation.machine = tenure.map(TenureRelation::as_str);
        Self {
            site,
            resource: named.and_then(|machine| shown(machine, method, subject, tenure)),
            relation,
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

/// The machine that a request of a machine or lease service names.
fn named_machine<'a>(
    tables: &'a Tables,
    method: &Method,
    message: &DynamicMessage,
) -> Option<&'a Machine> {
    let (_, service) = method.service.rsplit_once('.')?;
    let field = match service {
        "MachineService" => "uuid",
        "LeaseService" | "OperatorLeaseService" => "machine",
        _ => return None,
    };
    let uuid = message.get_field_by_name(field)?;
    let Value::String(uuid) = uuid.as_ref() else {
        return None;
    };
    let machine = tables.get::<Machine>(&uuid.parse().ok()?)?;
    Some(machine)
}

/// The machine as policies see it, if it is allocated to the request's project, or free and neither
/// another project's nor a host of a pool; for admin methods, any machine. Policies must not learn about
/// machines of other projects.
fn shown(
    machine: &Machine,
    method: &Method,
    subject: Option<&str>,
    tenure: Option<TenureRelation>,
) -> Option<Resource> {
    let allocation = machine.allocation.as_ref();
    let project = allocation.map(|found| found.project.to_string());
    let is_offered = machine.tenure.pool() == MachinePool::Shared && machine.pool.is_none();
    // The machine under a claim is hidden from the claim's project too.
    let is_claimed = allocation.is_some_and(|found| found.claim.is_some());
    let is_seen = match method.scope {
        Scope::Admin(_) => true,
        _ if project.is_none() => is_offered || tenure.is_some(),
        _ => !is_claimed && project.as_deref() == subject,
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
