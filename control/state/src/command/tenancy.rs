//! Commands about tenants, projects and tokens.

use std::collections::BTreeMap;
use std::fmt;

use proto_types::{Digest, ProjectId, TenantId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::entities::{
    EditorViewer, InviteTo, MethodPermission, ProjectRole, TenantRole, TokenType, Warrant,
};
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
    /// Who becomes its owner.
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

/// See [`Op::SetTenantMember`](crate::Op::SetTenantMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetTenantMember {
    /// Tenant.
    pub login: TenantId,
    /// Member.
    pub member: TenantId,
    /// Role.
    pub role: TenantRole,
    /// Refuse when the member is there (`Some(true)`) or is not (`Some(false)`).
    #[serde(default)]
    pub must_be_new: Option<bool>,
}

/// See [`Op::RemoveTenantMember`](crate::Op::RemoveTenantMember).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoveTenantMember {
    /// Tenant.
    pub login: TenantId,
    /// Member.
    pub member: TenantId,
}

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
    /// Who becomes its owner.
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

/// See [`Op::CreateInvite`](crate::Op::CreateInvite).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateInvite {
    /// SHA-256 of the secret.
    pub id: Digest,
    /// The secret, sealed.
    #[serde(with = "blob")]
    pub sealed_secret: Vec<u8>,
    /// What for.
    pub to: InviteTo,
    /// See [`Invite::warrant`](crate::Invite::warrant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
    /// End of validity, at most seven days away.
    pub expires_at: Timestamp,
}

impl fmt::Debug for CreateInvite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateInvite")
            .field("id", &self.id)
            .field("sealed_secret", &"<redacted>")
            .field("to", &self.to)
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

/// See [`Op::AcceptInvite`](crate::Op::AcceptInvite).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptInvite {
    /// SHA-256 of the secret.
    pub id: Digest,
    /// Who joins.
    pub member: TenantId,
}

/// What an invite leads into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvitePlace {
    /// A tenant.
    Tenant(TenantId),
    /// A project.
    Project(ProjectId),
}

/// See [`Op::DeleteInvite`](crate::Op::DeleteInvite).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteInvite {
    /// SHA-256 of the secret.
    pub id: Digest,
    /// What it must lead into: others' invites are not found.
    pub place: InvitePlace,
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
    /// What it is made for.
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

/// See [`Op::UpdateToken`](crate::Op::UpdateToken). Fields that are none stay.
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

impl UpdateToken {
    /// `true` if it takes a role away: older programs would leave the token its role.
    pub(crate) fn takes_role(&self) -> bool {
        self.drop_admin_role || self.drop_infra_role
    }
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
