//! Lookup of current memberships.

use std::collections::BTreeMap;

use proto_public::api::v2::{ProjectRole, TenantRole};

/// Looks up current memberships. The API implements it on the tables without copying them.
pub trait Directory {
    /// The user's direct role in a tenant.
    fn tenant_role(&self, user: &str, tenant: &str) -> Option<TenantRole>;
    /// The project and the user's direct role in it. `None` means that the project does not exist.
    fn project(&self, user: &str, project: &str) -> Option<InProject<'_>>;
    /// `true` if the user is a direct member of some project of the tenant, which makes it a guest.
    fn is_guest(&self, user: &str, tenant: &str) -> bool;
    /// The user's role in the provider's own tenant, from which admin rights come.
    fn provider_role(&self, user: &str) -> Option<TenantRole>;
}

/// A user's place in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InProject<'a> {
    /// Login of the tenant that the project belongs to.
    pub tenant: &'a str,
    /// The user's direct role, without the role inherited from the tenant.
    pub role: Option<ProjectRole>,
}

/// The memberships of one user, in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memberships {
    /// Direct roles by tenant login.
    pub tenants: BTreeMap<String, TenantRole>,
    /// Direct roles by project uuid.
    pub projects: BTreeMap<String, ProjectRole>,
    /// Tenant login by project uuid, for every project that exists.
    pub project_tenants: BTreeMap<String, String>,
    /// Login of the provider's tenant.
    pub provider: String,
}

impl Directory for Memberships {
    fn tenant_role(&self, _user: &str, tenant: &str) -> Option<TenantRole> {
        self.tenants.get(tenant).copied()
    }

    fn project(&self, _user: &str, project: &str) -> Option<InProject<'_>> {
        let tenant = self.project_tenants.get(project)?;
        let role = self.projects.get(project).copied();
        Some(InProject { tenant, role })
    }

    fn is_guest(&self, _user: &str, tenant: &str) -> bool {
        self.projects
            .keys()
            .any(|p| self.project_tenants.get(p).is_some_and(|t| t == tenant))
    }

    fn provider_role(&self, user: &str) -> Option<TenantRole> {
        self.tenant_role(user, &self.provider)
    }
}
