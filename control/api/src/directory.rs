//! Memberships out of the state, for decisions.

use control_authz::Directory;
use control_state::{self as state, Project, Tables, Tenant};
use proto_public::api::v2::{ProjectRole, TenantRole};
use proto_types::{ProjectId, TenantId};

use crate::convert::tenancy::{project_role, tenant_role};

/// The state as a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateDirectory<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) provider: &'a str,
}

impl<'a> StateDirectory<'a> {
    fn tenant(&self, login: &str) -> Option<&'a Tenant> {
        let login: TenantId = login.parse().ok()?;
        self.tables.get::<Tenant>(&login).map(AsRef::as_ref)
    }

    fn project(&self, id: &str) -> Option<&'a Project> {
        let id: ProjectId = id.parse().ok()?;
        self.tables.get::<Project>(&id).map(AsRef::as_ref)
    }
}

impl Directory for StateDirectory<'_> {
    fn tenant_role(&self, user: &str, tenant: &str) -> Option<TenantRole> {
        let user: TenantId = user.parse().ok()?;
        self.tenant(tenant)?
            .members
            .get(&user)
            .map(|member| tenant_role(member.role))
    }

    fn project_role(&self, user: &str, project: &str) -> Option<ProjectRole> {
        let user: TenantId = user.parse().ok()?;
        self.project(project)?
            .members
            .get(&user)
            .map(|member| project_role(member.role))
    }

    fn project_tenant(&self, project: &str) -> Option<&str> {
        self.project(project).map(|project| project.tenant.as_str())
    }

    fn is_guest(&self, user: &str, tenant: &str) -> bool {
        let Ok(user) = user.parse::<TenantId>() else {
            return false;
        };
        self.tables
            .all::<state::Project>()
            .any(|project| project.tenant.as_str() == tenant && project.members.contains_key(&user))
    }

    fn provider_role(&self, user: &str) -> Option<TenantRole> {
        self.tenant_role(user, self.provider)
    }
}
