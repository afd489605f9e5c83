//! Commands about the members of a project.

use proto_types::{ProjectId, TenantId};
use serde::{Deserialize, Serialize};

use crate::tenancy::entity::ProjectRole;

/// See [`Op::SetProjectMember`](crate::Op::SetProjectMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetProjectMember {
    /// Project.
    pub id: ProjectId,
    /// Member.
    pub member: TenantId,
    /// Role.
    pub role: ProjectRole,
    /// Refuse when the member is there (`Some(true)`) or is not (`Some(false)`).
    #[serde(default)]
    pub must_be_new: Option<bool>,
}

/// See [`Op::RemoveProjectMember`](crate::Op::RemoveProjectMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveProjectMember {
    /// Project.
    pub id: ProjectId,
    /// Member.
    pub member: TenantId,
}
