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
    /// Which.
    pub id: TokenId,
    /// Guard.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// Extra methods.
    #[serde(default)]
    pub permissions: Option<Vec<MethodPermission>>,
    /// Role by project id, or `*`.
    #[serde(default)]
    pub project_roles: Option<BTreeMap<String, ProjectRole>>,
    /// Role by tenant login, or `*`.
    #[serde(default)]
    pub tenant_roles: Option<BTreeMap<String, TenantRole>>,
    /// Role over everything.
    #[serde(default)]
    pub admin_role: Option<EditorViewer>,
    /// Role of infrastructure agents.
    #[serde(default)]
    pub infra_role: Option<EditorViewer>,
    /// Role by machine id.
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
    /// Which.
    pub id: TokenId,
}

/// See [`Op::TouchToken`](crate::Op::TouchToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TouchToken {
    /// Which.
    pub id: TokenId,
}
