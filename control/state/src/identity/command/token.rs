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
    /// The token. It has no roles, only methods.
    pub token: CreateToken,
    /// The component that it is for.
    pub component: TokenComponent,
}

/// See [`Op::CreateToken`](crate::Op::CreateToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateToken {
    /// Id of the token: `jti` of the JWT, a UUIDv7.
    pub id: TokenId,
    /// Login that the token acts as. Must not be empty.
    pub user: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Methods that the token may call beside those of its roles.
    #[serde(default)]
    pub permissions: Vec<MethodPermission>,
    /// End of validity, at most 365 days away.
    pub expires: Timestamp,
    /// Purpose of the token.
    pub token_type: TokenType,
    /// Role by project id. `*` stands for all projects of the user.
    #[serde(default)]
    pub project_roles: BTreeMap<String, ProjectRole>,
    /// Role by tenant login. `*` stands for all tenants of the user.
    #[serde(default)]
    pub tenant_roles: BTreeMap<String, TenantRole>,
    /// Role over everything. `None` means none.
    #[serde(default)]
    pub admin_role: Option<EditorViewer>,
    /// Role of infrastructure agents. `None` means none.
    #[serde(default)]
    pub infra_role: Option<EditorViewer>,
    /// Role by machine id. `*` stands for all machines.
    #[serde(default)]
    pub machine_roles: BTreeMap<String, EditorViewer>,
    /// See [`Token::warrant`](crate::Token::warrant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
}
