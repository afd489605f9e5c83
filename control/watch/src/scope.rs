//! The scope of a watch: which objects it shows.

use control_authz::PrincipalKind;
use control_convert::network::is_base_network;
use control_gate::Rights;
use control_gate::ServiceContext;
use control_gate::audit::belongs_to;
use control_state::{InvitePlace, QuotaSubject, Record, Tables};
use proto_types::{ProjectId, TenantId};

/// Whose objects a watch shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    All,
    /// A tenant's.
    Tenant(TenantId),
    /// A project's.
    Project(ProjectId),
    /// Public objects, and those of this user.
    Own(String),
}

/// State and rights that visibility is decided with.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisibilityContext<'a> {
    pub(super) tables: &'a Tables,
    pub(super) core: &'a ServiceContext,
    pub(super) rights: &'a Rights,
}

impl Scope {
    /// `true` if the read methods of this scope would show the object.
    pub(super) fn shows(&self, record: &Record, view: VisibilityContext<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Tenant(tenant) => match record {
                Record::Tenant(it) => it.login == *tenant,
                Record::Project(it) => it.tenant == *tenant && reads_project(it.id, view),
                Record::AuditEntry(it) => belongs_to(it, view.tables, tenant),
                Record::Quota(it) => it.subject == QuotaSubject::Tenant(tenant.clone()),
                Record::Invite(it) => it.to.place() == InvitePlace::Tenant(tenant.clone()),
                _ => false,
            },
            Self::Project(project) => match record {
                Record::Project(it) => it.id == *project,
                // A machine that serves a claim is not shown: the project has the claim.
                Record::Machine(it) => it.is_held_by(*project),
                Record::Claim(claim) => claim.project == *project,
                Record::Network(it) => {
                    it.project == Some(*project) || is_base_network(it, Some(*project))
                }
                Record::Ip(it) => it.project == *project,
                Record::Quota(it) => match &it.subject {
                    QuotaSubject::Project(id) => id == project,
                    QuotaSubject::Tenant(tenant) => {
                        let project = view.tables.get::<control_state::Project>(project);
                        project.is_some_and(|project| project.tenant == *tenant)
                    }
                },
                Record::SizeReservation(it) => it.project == *project,
                Record::FirewallRuleSet(rules) => rules.project == *project,
                Record::Lease(lease) => lease.owner == *project || lease.lessee == *project,
                Record::NodeAllocation(held) => held.owner == Some(*project),
                Record::Invite(it) => it.to.place() == InvitePlace::Project(*project),
                _ => false,
            },
            Self::Own(user) => match record {
                Record::Token(it) => it.user == *user && view.rights.manages(it),
                Record::Image(_) | Record::Size(_) | Record::Partition(_) | Record::Layout(_) => {
                    true
                }
                _ => false,
            },
        }
    }
}

/// A role in a tenant does not reach into each of its projects with every token.
fn reads_project(project: ProjectId, view: VisibilityContext<'_>) -> bool {
    const READ: &str = "/metalstack.api.v2.ProjectService/Get";
    let id = project.to_string();
    if view
        .tables
        .get::<control_state::Project>(&project)
        .is_none()
    {
        // The project is deleted and its memberships with it, so only the token's rights can
        // decide.
        let Some(principal) = view.rights.principal() else {
            return false;
        };
        let rights = &principal.rights;
        return principal.kind == PrincipalKind::User
            || rights.admin_role.is_some()
            || [id.as_str(), "*"]
                .iter()
                .any(|subject| rights.project_roles.contains_key(*subject));
    }
    view.rights.allows(view.tables, view.core, READ, &id)
}

/// `true` if `id` is the object's key or another id that clients use for it.
pub(super) fn goes_by(record: &Record, key: &str, id: &str) -> bool {
    key == id
        || match record {
            Record::Ip(it) => it.id.to_string() == id || it.ip.to_string() == id,
            Record::AuditEntry(it) => it.id == id,
            Record::Claim(claim) => claim.name == id,
            Record::Lease(lease) => lease.id.to_string() == id,
            Record::Quota(it) => match &it.subject {
                QuotaSubject::Tenant(login) => login.as_str() == id,
                QuotaSubject::Project(project) => project.to_string() == id,
            },
            _ => false,
        }
}
