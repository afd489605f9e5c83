//! Queries about owners and members.

use proto_types::TenantId;

use crate::tables::Tables;
use crate::tenancy::entity::{Invite, InvitePlace, Project, ProjectRole, Tenant, TenantRole};

/// `true` if the maker of an invite may make it now. An invite that rests on a standing over the
/// platform is judged by those who know the platform's own tenant.
pub fn invite_is_backed(tables: &Tables, invite: &Invite) -> bool {
    invite.warrant.is_some() || owns(tables, &invite.invited_by, &invite.to.place())
}

/// `true` if a user is an owner of a tenant or project now, the latter through its tenant as well.
pub fn owns(tables: &Tables, user: &str, place: &InvitePlace) -> bool {
    let owns_tenant = |login: &TenantId| {
        let tenant = tables.get::<Tenant>(login);
        let owners = tenant.iter().flat_map(|tenant| &tenant.members);
        owners
            .filter(|(_, member)| member.role == TenantRole::Owner)
            .any(|(login, _)| login.as_str() == user)
    };
    match place {
        InvitePlace::Tenant(login) => owns_tenant(login),
        InvitePlace::Project(id) => tables.get::<Project>(id).is_some_and(|project| {
            let owners = project.members.iter();
            owns_tenant(&project.tenant)
                || owners
                    .filter(|(_, member)| member.role == ProjectRole::Owner)
                    .any(|(login, _)| login.as_str() == user)
        }),
    }
}

/// `true` if the user is a direct member of a project of the tenant.
pub fn is_member_of_a_project(tables: &Tables, member: &str, tenant: &str) -> bool {
    let ids = tables.index().member_projects.get(member);
    let mut projects = ids.into_iter().flatten();
    projects.any(|id| {
        let project = tables.get::<Project>(id);
        project.is_some_and(|project| project.tenant.as_str() == tenant)
    })
}
