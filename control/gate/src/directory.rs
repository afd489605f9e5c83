//! Memberships from the state, for authorisation.

use control_authz::{Directory, InProject};
use control_state::query::is_member_of_a_project;
use control_state::{Project, Tables, Tenant};
use proto_public::api::v2::TenantRole;
use proto_types::ProjectId;

use crate::roles::{project_role, tenant_role};

/// Looks memberships up in the state.
#[derive(Debug, Clone, Copy)]
pub struct StateDirectory<'a> {
    pub tables: &'a Tables,
    pub provider: &'a str,
}

impl Directory for StateDirectory<'_> {
    fn tenant_role(&self, user: &str, tenant: &str) -> Option<TenantRole> {
        let tenant = &self.tables.table::<Tenant>().get(tenant)?.value;
        let member = tenant.members.get(user)?;
        Some(tenant_role(member.role))
    }

    fn project(&self, user: &str, project: &str) -> Option<InProject<'_>> {
        let id: ProjectId = project.parse().ok()?;
        let project = self.tables.get::<Project>(&id)?;
        let member = project.members.get(user);
        Some(InProject {
            tenant: project.tenant.as_str(),
            role: member.map(|member| project_role(member.role)),
        })
    }

    fn is_guest(&self, user: &str, tenant: &str) -> bool {
        is_member_of_a_project(self.tables, user, tenant)
    }

    fn provider_role(&self, user: &str) -> Option<TenantRole> {
        self.tenant_role(user, self.provider)
    }
}
