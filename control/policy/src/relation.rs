//! The caller's relation to the subject of a call.

use control_authz::{Directory, Principal, project_role, tenant_role};
use proto_public::api::v2::{ProjectRole, TenantRole};
use proto_public::{Method, Scope};

/// The user's current roles in the subject of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relation {
    /// The subject tenant, or the tenant of the subject project.
    pub tenant: Option<String>,
    /// The user's role in that tenant.
    pub tenant_role: Option<TenantRole>,
    /// The user's role in the project, direct or inherited from the tenant.
    pub project_role: Option<ProjectRole>,
    /// The relation of the project to the machine that the request names: `owner` or `lessee`. `None`
    /// means that it has none, or that the request names no machine.
    pub machine: Option<&'static str>,
}

impl Relation {
    /// Looks up the relation in the current memberships.
    pub fn of(
        method: &Method,
        who: &Principal,
        directory: &dyn Directory,
        subject: Option<&str>,
    ) -> Self {
        let subject = subject.unwrap_or_default();
        match method.scope {
            Scope::Tenant(_) => Self {
                tenant: Some(subject.to_owned()),
                tenant_role: tenant_role(directory, &who.user, subject),
                project_role: None,
                machine: None,
            },
            Scope::Project(_) => {
                let Some(project) = directory.project(&who.user, subject) else {
                    return Self::default();
                };
                let direct = directory.tenant_role(&who.user, project.tenant);
                let guest = || project.role.map(|_| TenantRole::Guest);
                Self {
                    tenant: Some(project.tenant.to_owned()),
                    tenant_role: direct.or_else(guest),
                    project_role: project_role(directory, &who.user, subject),
                    machine: None,
                }
            }
            _ => Self::default(),
        }
    }
}
