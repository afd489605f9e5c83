//! Commands that change, revoke and touch tokens.

use std::collections::BTreeMap;

use proto_types::TokenId;
use serde::{Deserialize, Serialize};

use crate::identity::entity::{EditorViewer, MethodPermission};
use crate::meta::{LabelsUpdate, Lock};
use crate::tenancy::entity::{ProjectRole, TenantRole, Warrant};

/// See [`Op::UpdateToken`](crate::Op::UpdateToken). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateToken {
    /// The token to change.
    pub id: TokenId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// All methods that the token may call beside those of its roles.
    #[serde(default)]
    pub permissions: Option<Vec<MethodPermission>>,
    /// All roles by project id. `*` stands for all projects of the user.
    #[serde(default)]
    pub project_roles: Option<BTreeMap<String, ProjectRole>>,
    /// All roles by tenant login. `*` stands for all tenants of the user.
    #[serde(default)]
    pub tenant_roles: Option<BTreeMap<String, TenantRole>>,
    /// Role over everything. `None` keeps it; see `drop_admin_role`.
    #[serde(default)]
    pub admin_role: Option<EditorViewer>,
    /// Role of infrastructure agents. `None` keeps it; see `drop_infra_role`.
    #[serde(default)]
    pub infra_role: Option<EditorViewer>,
    /// All roles by machine id. `*` stands for all machines.
    #[serde(default)]
    pub machine_roles: Option<BTreeMap<String, EditorViewer>>,
    /// `true` takes the role over everything away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_admin_role: bool,
    /// `true` takes the role of infrastructure agents away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_infra_role: bool,
    /// See [`Token::warrant`](crate::Token::warrant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
}

/// See [`Op::RevokeToken`](crate::Op::RevokeToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeToken {
    /// The token to revoke.
    pub id: TokenId,
}

/// See [`Op::TouchToken`](crate::Op::TouchToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TouchToken {
    /// The token that was used.
    pub id: TokenId,
}
