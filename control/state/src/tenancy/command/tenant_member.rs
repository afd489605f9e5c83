//! Commands about the members of a tenant.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::tenancy::entity::TenantRole;

/// See [`Op::SetTenantMember`](crate::Op::SetTenantMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetTenantMember {
    /// The tenant.
    pub login: TenantId,
    /// Login of the member.
    pub member: TenantId,
    /// The new role.
    pub role: TenantRole,
    /// `Some(true)` refuses a member that exists, `Some(false)` one that does not. `None` accepts
    /// both.
    #[serde(default)]
    pub must_be_new: Option<bool>,
}

/// See [`Op::RemoveTenantMember`](crate::Op::RemoveTenantMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveTenantMember {
    /// The tenant.
    pub login: TenantId,
    /// Login of the member.
    pub member: TenantId,
}
