//! API tokens: the store is the truth for roles and revocation, the JWT only names the token.

use std::collections::BTreeMap;

use proto_types::{ProjectId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use crate::identity::entity::{EditorViewer, MethodPermission};
use crate::meta::Meta;
use crate::tenancy::entity::{ProjectRole, TenantRole, Warrant};

/// The purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenType {
    /// Made through the API. It carries its own roles.
    Api,
    /// Made by a login. Its roles are those of the user at each request.
    User,
}

/// The component of a project that a token was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenComponent {
    /// The project that the component works for.
    pub project: ProjectId,
    /// Kind of the component. The name never changes.
    pub kind: String,
    /// Name of the component, a host name.
    pub name: String,
}

/// A token; its secret (the signed JWT) is nowhere in the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The key: `jti` of the JWT.
    pub id: TokenId,
    /// Login that the token acts as, or the name of a component.
    pub user: String,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Methods that the token may call beside those of its roles.
    #[serde(default)]
    pub permissions: Vec<MethodPermission>,
    /// End of validity.
    pub expires: Timestamp,
    /// Begin of validity.
    pub issued_at: Timestamp,
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
    /// The component that it was made for. `None` means a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<TokenComponent>,
    /// The standing on which its rights over the platform rest; `None` means the role of its own
    /// user in the provider's tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
    /// Time of its revocation. `None` means that it is not revoked.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
    /// Time of the last use, to within a few minutes; see `Op::TouchToken`. `None` means never.
    #[serde(default)]
    pub last_used: Option<Timestamp>,
}

impl Token {
    /// The holder whose budget the token counts against. `None` means that it has rights on
    /// machines only: an infra token creates one at each boot.
    pub(crate) fn holder(&self) -> Option<String> {
        if let Some(component) = &self.component {
            return Some(format!("components of project {}", component.project));
        }
        let is_machines = !self.machine_roles.is_empty()
            && self.project_roles.is_empty()
            && self.tenant_roles.is_empty()
            && self.permissions.is_empty()
            && (self.admin_role, self.infra_role) == (None, None);
        (!is_machines).then(|| format!("user \"{}\"", self.user))
    }

    /// `true` if the token is neither revoked nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires
    }
}
