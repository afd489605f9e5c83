//! Roles of the state as the contract names them.

use control_state as state;
use proto_public::api::v2;

/// A tenant role of the state as the contract's.
pub const fn tenant_role(role: state::TenantRole) -> v2::TenantRole {
    match role {
        state::TenantRole::Owner => v2::TenantRole::Owner,
        state::TenantRole::Editor => v2::TenantRole::Editor,
        state::TenantRole::Viewer => v2::TenantRole::Viewer,
        state::TenantRole::Guest => v2::TenantRole::Guest,
    }
}

/// A project role of the state as the contract's.
pub const fn project_role(role: state::ProjectRole) -> v2::ProjectRole {
    match role {
        state::ProjectRole::Owner => v2::ProjectRole::Owner,
        state::ProjectRole::Editor => v2::ProjectRole::Editor,
        state::ProjectRole::Viewer => v2::ProjectRole::Viewer,
    }
}
