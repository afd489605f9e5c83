//! Commands about projects.

use proto_types::{ProjectId, TenantId};
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};

/// See [`Op::CreateProject`](crate::Op::CreateProject).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateProject {
    /// Id of the new project.
    pub id: ProjectId,
    /// The tenant that the project belongs to.
    pub tenant: TenantId,
    /// Display name, unique in the tenant.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// URL of a picture. `None` means none.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Login of the first owner. `None` means that the owners of the tenant own it.
    #[serde(default)]
    pub owner: Option<TenantId>,
}

/// See [`Op::UpdateProject`](crate::Op::UpdateProject).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateProject {
    /// The project to change.
    pub id: ProjectId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Display name, unique in the tenant.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// URL of a picture.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::DeleteProject`](crate::Op::DeleteProject).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteProject {
    /// The project to delete.
    pub id: ProjectId,
}
