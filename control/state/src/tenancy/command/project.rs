//! Commands about projects.

use proto_types::{ProjectId, TenantId};
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};

/// See [`Op::CreateProject`](crate::Op::CreateProject).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateProject {
    /// Id.
    pub id: ProjectId,
    /// Tenant.
    pub tenant: TenantId,
    /// Shown name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Where a picture is.
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
    /// Which.
    pub id: ProjectId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Where a picture is.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::DeleteProject`](crate::Op::DeleteProject).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteProject {
    /// Which.
    pub id: ProjectId,
}
