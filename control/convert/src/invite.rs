//! Invites, without their secrets: the caller unseals and adds them.

use control_gate::roles;
use control_state::{self as state, InviteTo, Tables};
use proto_public::api::v2;

use super::time;

/// An invite into a tenant for the wire, without its secret. `None` if it is into a project.
pub fn tenant_invite(tables: &Tables, invite: &state::Invite) -> Option<v2::TenantInvite> {
    let InviteTo::Tenant { login, role } = &invite.to else {
        return None;
    };
    let name = |login: &str| {
        let tenant = login.parse().ok();
        let tenant = tenant.and_then(|login| tables.get::<state::Tenant>(&login));
        tenant.map(|tenant| tenant.name.clone()).unwrap_or_default()
    };
    Some(v2::TenantInvite {
        secret: String::new(),
        target_tenant: login.to_string(),
        role: roles::tenant_role(*role).into(),
        joined: false,
        target_tenant_name: name(login.as_str()),
        tenant: invite.invited_by.clone(),
        tenant_name: name(&invite.invited_by),
        expires_at: time(invite.expires_at),
        joined_at: None,
    })
}

/// An invite into a project for the wire, without its secret. `None` if it is into a tenant.
pub fn project_invite(tables: &Tables, invite: &state::Invite) -> Option<v2::ProjectInvite> {
    let InviteTo::Project { id, role } = &invite.to else {
        return None;
    };
    let project = tables.get::<state::Project>(id);
    let tenant = project.map(|project| &project.tenant);
    let named = tenant.and_then(|login| tables.get::<state::Tenant>(login));
    Some(v2::ProjectInvite {
        secret: String::new(),
        project: id.to_string(),
        role: roles::project_role(*role).into(),
        joined: false,
        project_name: project
            .map(|project| project.name.clone())
            .unwrap_or_default(),
        tenant: tenant.map(ToString::to_string).unwrap_or_default(),
        tenant_name: named.map(|tenant| tenant.name.clone()).unwrap_or_default(),
        expires_at: time(invite.expires_at),
        joined_at: None,
    })
}
