//! Memberships as the state has them at this moment.

use std::collections::BTreeMap;

use proto_public::api::v2::{ProjectRole, TenantRole};

/// Looks memberships up; the API implements it over the tables, without copying them.
pub trait Directory {
    /// The user's direct role in a tenant.
    fn tenant_role(&self, user: &str, tenant: &str) -> Option<TenantRole>;
    /// The user's direct role in a project, without what the tenant lends.
    fn project_role(&self, user: &str, project: &str) -> Option<ProjectRole>;
    /// The tenant that a project belongs to; `None` for a project that does not exist.
    fn project_tenant(&self, project: &str) -> Option<&str>;
    /// Whether the user is a direct member of some project of a tenant, which makes it a guest.
    fn is_guest(&self, user: &str, tenant: &str) -> bool;
    /// The user's role in the provider's own tenant, from which admin rights come.
    fn provider_role(&self, user: &str) -> Option<TenantRole>;
}

/// A directory of one user's memberships, in memory.
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

    fn project_role(&self, _user: &str, project: &str) -> Option<ProjectRole> {
        self.projects.get(project).copied()
    }

    fn project_tenant(&self, project: &str) -> Option<&str> {
        self.project_tenants.get(project).map(String::as_str)
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
