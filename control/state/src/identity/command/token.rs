//! Commands about tokens.

use std::collections::BTreeMap;

use proto_types::{Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use crate::identity::entity::{EditorViewer, MethodPermission, TokenComponent, TokenType};
use crate::meta::Labels;
use crate::tenancy::entity::{ProjectRole, TenantRole, Warrant};

/// See [`Op::CreateComponentToken`](crate::Op::CreateComponentToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateComponentToken {
    /// The token, without roles.
    pub token: CreateToken,
    /// For which component.
    pub component: TokenComponent,
}

/// See [`Op::CreateToken`](crate::Op::CreateToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateToken {
    /// Id: `jti` of the JWT, a UUIDv7.
    pub id: TokenId,
    /// Login that it acts as.
    pub user: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Extra methods.
    #[serde(default)]
    pub permissions: Vec<MethodPermission>,
    /// End of validity.
    pub expires: Timestamp,
    /// Purpose of the token.
    pub token_type: TokenType,
    /// Role by project id, or `*`.
    #[serde(default)]
    pub project_roles: BTreeMap<String, ProjectRole>,
    /// Role by tenant login, or `*`.
    #[serde(default)]
    pub tenant_roles: BTreeMap<String, TenantRole>,
    /// Role over everything.
    #[serde(default)]
    pub admin_role: Option<EditorViewer>,
    /// Role of infrastructure agents.
    #[serde(default)]
    pub infra_role: Option<EditorViewer>,
    /// Role by machine id.
    #[serde(default)]
    pub machine_roles: BTreeMap<String, EditorViewer>,
    /// See [`Token::warrant`](crate::Token::warrant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
}
