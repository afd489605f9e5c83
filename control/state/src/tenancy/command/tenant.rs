//! Commands about tenants.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};

/// See [`Op::CreateTenant`](crate::Op::CreateTenant).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateTenant {
    /// Login: key of the new tenant.
    pub login: TenantId,
    /// Display name.
    pub name: String,
    /// Mail address. Empty means unknown.
    #[serde(default)]
    pub email: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// URL of a picture. Empty means none.
    #[serde(default)]
    pub avatar_url: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Login of the first owner. `None` means that the tenant has no member.
    #[serde(default)]
    pub owner: Option<TenantId>,
}

/// See [`Op::UpdateTenant`](crate::Op::UpdateTenant).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateTenant {
    /// The tenant to change.
    pub login: TenantId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Mail address. Empty removes it.
    #[serde(default)]
    pub email: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// URL of a picture. Empty removes it.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::DeleteTenant`](crate::Op::DeleteTenant).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteTenant {
    /// The tenant to delete.
    pub login: TenantId,
    /// `true` if an administrator asks, who may delete a user's personal tenant too.
    #[serde(default)]
    pub personal: bool,
}
