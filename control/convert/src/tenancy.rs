//! Tenants, projects, members.

use std::collections::BTreeSet;

use control_gate::roles::{project_role, tenant_role};
use control_state::{self as state, Tables};
use proto_public::api::v2;
use proto_types::TenantId;

use super::{has_labels, is, meta, time};

/// A tenant role from the wire.
pub fn from_tenant_role(number: i32) -> Option<state::TenantRole> {
    match v2::TenantRole::try_from(number).ok()? {
        v2::TenantRole::Unspecified => None,
        v2::TenantRole::Owner => Some(state::TenantRole::Owner),
        v2::TenantRole::Editor => Some(state::TenantRole::Editor),
        v2::TenantRole::Viewer => Some(state::TenantRole::Viewer),
        v2::TenantRole::Guest => Some(state::TenantRole::Guest),
    }
}

/// A project role from the wire.
pub fn from_project_role(number: i32) -> Option<state::ProjectRole> {
    match v2::ProjectRole::try_from(number).ok()? {
        v2::ProjectRole::Unspecified => None,
        v2::ProjectRole::Owner => Some(state::ProjectRole::Owner),
        v2::ProjectRole::Editor => Some(state::ProjectRole::Editor),
        v2::ProjectRole::Viewer => Some(state::ProjectRole::Viewer),
    }
}

/// A tenant for the wire.
pub fn tenant(tenant: &state::Tenant) -> v2::Tenant {
    v2::Tenant {
        login: tenant.login.to_string(),
        meta: meta(&tenant.meta),
        name: tenant.name.clone(),
        email: tenant.email.clone(),
        description: tenant.description.clone(),
        avatar_url: tenant.avatar_url.clone(),
        created_by: tenant.created_by.clone(),
    }
}

/// `true` if the query matches this tenant.
pub fn tenant_matches(tenant: &state::Tenant, query: Option<&v2::TenantQuery>) -> bool {
    let Some(query) = query else { return true };
    is(query.login.as_ref(), tenant.login.as_str())
        && is(query.name.as_ref(), &tenant.name)
        && has_labels(&tenant.meta.labels, query.labels.as_ref())
}

/// One member of a tenant, with its projects there.
pub fn tenant_member(
    tables: &Tables,
    tenant: &state::Tenant,
    id: &TenantId,
    member: &state::Member<state::TenantRole>,
) -> v2::TenantMember {
    let projects = tables
        .all::<state::Project>()
        .filter(|project| project.tenant == tenant.login && project.members.contains_key(id));
    v2::TenantMember {
        id: id.to_string(),
        role: tenant_role(member.role).into(),
        projects: projects.map(|project| project.id.to_string()).collect(),
        created_at: time(member.created_at),
        meta: Some(v2::Meta {
            created_at: time(member.created_at),
            updated_at: time(member.created_at),
            ..Default::default()
        }),
    }
}

/// All members of a tenant: its own, then guests through projects.
pub fn tenant_members(tables: &Tables, tenant: &state::Tenant) -> Vec<v2::TenantMember> {
    let own = tenant
        .members
        .iter()
        .map(|(id, member)| tenant_member(tables, tenant, id, member));
    let mut members: Vec<v2::TenantMember> = own.collect();
    let projects = tables
        .all::<state::Project>()
        .filter(|p| p.tenant == tenant.login);
    let guests: BTreeSet<&TenantId> = projects
        .flat_map(|project| project.members.keys())
        .collect();
    for id in guests
        .into_iter()
        .filter(|id| !tenant.members.contains_key(*id))
    {
        let since = tables
            .all::<state::Project>()
            .filter(|project| project.tenant == tenant.login)
            .filter_map(|project| project.members.get(id))
            .map(|member| member.created_at)
            .min()
            .unwrap_or_default();
        let guest = state::Member {
            role: state::TenantRole::Guest,
            created_at: since,
        };
        members.push(tenant_member(tables, tenant, id, &guest));
    }
    members
}

/// A project for the wire.
pub fn project(project: &state::Project) -> v2::Project {
    v2::Project {
        uuid: project.id.to_string(),
        meta: meta(&project.meta),
        name: project.name.clone(),
        description: project.description.clone(),
        tenant: project.tenant.to_string(),
        avatar_url: project.avatar_url.clone(),
    }
}

/// `true` if the query matches this project.
pub fn project_matches(project: &state::Project, query: Option<&v2::ProjectQuery>) -> bool {
    let Some(query) = query else { return true };
    is(query.uuid.as_ref(), &project.id.to_string())
        && is(query.name.as_ref(), &project.name)
        && is(query.tenant.as_ref(), project.tenant.as_str())
        && has_labels(&project.meta.labels, query.labels.as_ref())
}

/// One member of a project.
pub fn project_member(
    id: &TenantId,
    member: &state::Member<state::ProjectRole>,
    inherited: bool,
) -> v2::ProjectMember {
    v2::ProjectMember {
        id: id.to_string(),
        role: project_role(member.role).into(),
        inherited_membership: inherited,
        created_at: time(member.created_at),
        meta: Some(v2::Meta {
            created_at: time(member.created_at),
            updated_at: time(member.created_at),
            ..Default::default()
        }),
    }
}

/// All members of a project: its own, then those of its tenant.
pub fn project_members(tables: &Tables, project: &state::Project) -> Vec<v2::ProjectMember> {
    let own = project
        .members
        .iter()
        .map(|(id, member)| project_member(id, member, false));
    let mut members: Vec<v2::ProjectMember> = own.collect();
    let Some(tenant) = tables.get::<state::Tenant>(&project.tenant) else {
        return members;
    };
    for (id, member) in &tenant.members {
        let role = match member.role {
            state::TenantRole::Owner => state::ProjectRole::Owner,
            state::TenantRole::Editor => state::ProjectRole::Editor,
            state::TenantRole::Viewer => state::ProjectRole::Viewer,
            state::TenantRole::Guest => continue,
        };
        if !project.members.contains_key(id) {
            let lent = state::Member {
                role,
                created_at: member.created_at,
            };
            members.push(project_member(id, &lent, true));
        }
    }
    members
}
