//! Commands about the members of a project.

use proto_types::{ProjectId, TenantId};
use serde::{Deserialize, Serialize};

use crate::tenancy::entity::ProjectRole;

/// See [`Op::SetProjectMember`](crate::Op::SetProjectMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetProjectMember {
    /// The project.
    pub id: ProjectId,
    /// Login of the member.
    pub member: TenantId,
    /// The new role.
    pub role: ProjectRole,
    /// `Some(true)` refuses a member that exists, `Some(false)` one that does not. `None` accepts
    /// both.
    #[serde(default)]
    pub must_be_new: Option<bool>,
}

/// See [`Op::RemoveProjectMember`](crate::Op::RemoveProjectMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveProjectMember {
    /// The project.
    pub id: ProjectId,
    /// Login of the member.
    pub member: TenantId,
}
