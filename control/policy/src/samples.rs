//! Sample callers on which policies are tried: every relation that a caller can have to the subject
//! of a call.

use std::collections::BTreeMap;

use control_authz::{
    Decided, Denied, Judge, Memberships, Permit, Principal, PrincipalKind, TokenRights,
    authorise_path, is_of_platform,
};
use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{Method, Scope};

use crate::{CallFacts, Moment, Relation};

/// The subject tenant of sample calls.
const TENANT: &str = "sample-tenant";
/// The subject project, of `TENANT`.
const PROJECT: &str = "00000000-0000-4000-8000-000000000001";
/// The subject machine, in `PROJECT`.
const MACHINE: &str = "00000000-0000-4000-8000-000000000002";
/// A tenant that is not the subject.
const OTHER: &str = "other-tenant";
/// A project of `OTHER`.
const OTHER_PROJECT: &str = "00000000-0000-4000-8000-000000000003";
/// The provider's tenant.
const PROVIDER: &str = "provider";

/// Times of sample calls with their names: a Wednesday at noon and a Sunday at 03:00, UTC.
pub const MOMENTS: [(&str, Moment); 2] = [
    (
        "wednesday 12:00",
        Moment {
            ms: 1_795_608_000_000,
        },
    ),
    (
        "sunday 03:00",
        Moment {
            ms: 1_795_316_400_000,
        },
    ),
];

/// A sample caller.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Short name, for tables.
    pub name: &'static str,
    /// Description in words.
    pub title: &'static str,
    who: Principal,
    directory: Memberships,
}

/// A sample call with the table's decision.
#[derive(Debug)]
pub(crate) struct SampleCall<'a> {
    pub(crate) method: &'static Method,
    pub(crate) sample: &'a Sample,
    pub(crate) moment: Moment,
    pub(crate) request: serde_json::Value,
    relation: Relation,
    pub(crate) table: Result<Permit, Denied>,
}

impl Sample {
    fn user(name: &'static str, title: &'static str, directory: Memberships) -> Self {
        Self {
            name,
            title,
            who: principal(PrincipalKind::User, TokenRights::default()),
            directory,
        }
    }

    fn api(
        name: &'static str,
        title: &'static str,
        rights: TokenRights,
        directory: Memberships,
    ) -> Self {
        Self {
            name,
            title,
            who: principal(PrincipalKind::Api, rights),
            directory,
        }
    }
}

impl<'a> SampleCall<'a> {
    /// A call of the method. `more` adds fields to its request.
    pub(crate) fn new(
        method: &'static Method,
        sample: &'a Sample,
        moment: Moment,
        more: Option<&serde_json::Value>,
    ) -> Self {
        let subject = subject(method);
        let (who, directory) = (&sample.who, &sample.directory);
        let table = authorise_path(&method.path, who, directory, subject);
        let mut request = more.cloned().unwrap_or_else(|| serde_json::json!({}));
        if let (Some(field), Some(subject), Some(fields)) = (
            method.scope.subject_field(),
            subject,
            request.as_object_mut(),
        ) {
            fields
                .entry(field)
                .or_insert_with(|| serde_json::Value::from(subject));
        }
        Self {
            method,
            sample,
            moment,
            request,
            relation: Relation::of(method, who, directory, subject),
            table,
        }
    }

    pub(crate) fn facts(&self) -> CallFacts<'_> {
        let sample = self.sample;
        CallFacts {
            method: self.method,
            who: &sample.who,
            is_of_platform: is_of_platform(&sample.who, &sample.directory),
            subject: subject(self.method),
            relation: &self.relation,
            table: &self.table,
            address: Some(std::net::IpAddr::from([192, 0, 2, 1])),
            partition: None,
            request: Some(&self.request),
            resource: None,
            now: self.moment,
        }
    }

    /// The decision under a judge.
    pub(crate) fn under(&self, judge: &dyn Judge) -> Result<Permit, Denied> {
        let sample = self.sample;
        let decided = Decided {
            method: self.method,
            who: &sample.who,
            is_of_platform: is_of_platform(&sample.who, &sample.directory),
            subject: subject(self.method),
            table: self.table.clone(),
        };
        decided.under(judge)
    }
}

fn subject(method: &Method) -> Option<&'static str> {
    match method.scope {
        Scope::Tenant(_) => Some(TENANT),
        Scope::Project(_) => Some(PROJECT),
        Scope::Machine(_) => Some(MACHINE),
        _ => None,
    }
}

fn principal(kind: PrincipalKind, rights: TokenRights) -> Principal {
    Principal {
        user: "sample-user".into(),
        token: "00000000-0000-4000-8000-00000000000f".into(),
        kind,
        rights,
    }
}

fn memberships(tenants: &[(&str, TenantRole)], projects: &[(&str, ProjectRole)]) -> Memberships {
    let pairs = [(PROJECT, TENANT), (OTHER_PROJECT, OTHER)];
    Memberships {
        tenants: tenants
            .iter()
            .map(|(tenant, role)| ((*tenant).to_owned(), *role))
            .collect(),
        projects: projects
            .iter()
            .map(|(project, role)| ((*project).to_owned(), *role))
            .collect(),
        project_tenants: pairs
            .map(|(project, tenant)| (project.to_owned(), tenant.to_owned()))
            .into(),
        provider: PROVIDER.to_owned(),
    }
}

/// Every kind of caller.
pub fn callers() -> Vec<Sample> {
    let nobody = Sample {
        name: "nobody",
        title: "no token",
        who: Principal::anonymous(),
        directory: stranger(),
    };
    let mut all = vec![nobody];
    all.extend(people());
    all.extend(programs());
    all
}

fn stranger() -> Memberships {
    memberships(&[(OTHER, TenantRole::Owner)], &[])
}

/// Users with the token of a log-in.
fn people() -> Vec<Sample> {
    let user = |name, title, tenants: &[_], projects: &[_]| {
        Sample::user(name, title, memberships(tenants, projects))
    };
    let tenant = |name, title, role| user(name, title, &[(TENANT, role)], &[]);
    let guest = |name, title, role| user(name, title, &[], &[(PROJECT, role)]);
    let (viewer, editor) = (TenantRole::Viewer, TenantRole::Editor);
    let (views, edits) = (ProjectRole::Viewer, ProjectRole::Editor);
    let owns = ProjectRole::Owner;
    let provider = "owner of the provider's tenant";
    vec![
        Sample::user("stranger", "owner of another tenant", stranger()),
        guest("guest-viewer", "invited into the project as viewer", views),
        guest("guest-editor", "invited into the project as editor", edits),
        guest("guest-owner", "invited into the project as owner", owns),
        tenant("viewer", "viewer of the tenant", viewer),
        tenant("editor", "editor of the tenant", editor),
        tenant("owner", "owner of the tenant", TenantRole::Owner),
        user("provider", provider, &[(PROVIDER, TenantRole::Owner)], &[]),
    ]
}

/// Holders of an API token.
fn programs() -> Vec<Sample> {
    let rights = TokenRights::default;
    let of_project = |name, title, role| {
        let rights = TokenRights {
            project_roles: BTreeMap::from([(PROJECT.to_owned(), role)]),
            ..rights()
        };
        let owner = memberships(&[(TENANT, TenantRole::Owner)], &[]);
        Sample::api(name, title, rights, owner)
    };
    let of_admin = |name, title, role| {
        let rights = TokenRights {
            admin_role: Some(role),
            ..rights()
        };
        Sample::api(name, title, rights, stranger())
    };
    let infra = TokenRights {
        infra_role: Some(InfraRole::Editor),
        ..rights()
    };
    let machine = TokenRights {
        machine_roles: BTreeMap::from([(MACHINE.to_owned(), MachineRole::Editor)]),
        ..rights()
    };
    let (edits, owns) = (ProjectRole::Editor, ProjectRole::Owner);
    let (views, rules) = (AdminRole::Viewer, AdminRole::Editor);
    vec![
        of_project(
            "token-editor",
            "an owner's token, editor of the project",
            edits,
        ),
        of_project(
            "token-owner",
            "an owner's token, owner of the project",
            owns,
        ),
        of_admin("admin-viewer", "administrator's token that reads", views),
        of_admin("admin-editor", "administrator's token", rules),
        Sample::api("infra", "an agent's token", infra, stranger()),
        Sample::api("machine", "a machine's token", machine, stranger()),
    ]
}
