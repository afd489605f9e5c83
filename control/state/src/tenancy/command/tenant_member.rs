//! Commands about the members of a tenant.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::tenancy::entity::TenantRole;

/// See [`Op::SetTenantMember`](crate::Op::SetTenantMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetTenantMember {
    /// Tenant.
    pub login: TenantId,
    /// Member.
    pub member: TenantId,
    /// Role.
    pub role: TenantRole,
    /// Refuse when the member is there (`Some(true)`) or is not (`Some(false)`).
    #[serde(default)]
    pub must_be_new: Option<bool>,
}

/// See [`Op::RemoveTenantMember`](crate::Op::RemoveTenantMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveTenantMember {
    /// Tenant.
    pub login: TenantId,
    /// Member.
    pub member: TenantId,
}
