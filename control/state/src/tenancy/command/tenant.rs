//! Commands about tenants.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::meta::{Labels, LabelsUpdate, Lock};

/// See [`Op::CreateTenant`](crate::Op::CreateTenant).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateTenant {
    /// Login.
    pub login: TenantId,
    /// Shown name.
    pub name: String,
    /// Mail address.
    #[serde(default)]
    pub email: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Where a picture is.
    #[serde(default)]
    pub avatar_url: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Login of the first owner. `None` means that it has no member.
    #[serde(default)]
    pub owner: Option<TenantId>,
}

/// See [`Op::UpdateTenant`](crate::Op::UpdateTenant).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateTenant {
    /// Which.
    pub login: TenantId,
    /// Guard.
    pub lock: Lock,
    /// Shown name.
    #[serde(default)]
    pub name: Option<String>,
    /// Mail address.
    #[serde(default)]
    pub email: Option<String>,
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

/// See [`Op::DeleteTenant`](crate::Op::DeleteTenant).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteTenant {
    /// Which.
    pub login: TenantId,
    /// `true` if an administrator asks, who may delete a user's personal tenant too.
    #[serde(default)]
    pub personal: bool,
}
