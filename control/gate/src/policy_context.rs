//! Facts about a call that site policies judge, and the decision under them.

use std::net::IpAddr;
use std::sync::Arc;

use control_authz::{Decided, Denied, Permit, Principal, is_of_platform};
use control_policy::{CallFacts, JudgedCall, Moment, Relation, Resource, SitePolicies};
use control_state::{Machine, Tables};
use prost_reflect::{DynamicMessage, Value};
use proto_public::{Method, Scope, json};
use proto_types::Timestamp;

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
