//! Invites into tenants and projects.

use std::fmt;

use proto_types::{Digest, ProjectId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::tenancy::entity::{ProjectRole, TenantRole, Warrant};

impl InviteTo {
    /// The tenant or project of the invite.
    pub fn place(&self) -> InvitePlace {
        match self {
            Self::Tenant { login, .. } => InvitePlace::Tenant(login.clone()),
            Self::Project { id, .. } => InvitePlace::Project(*id),
        }
    }
}

/// The tenant or project of an invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvitePlace {
    /// A tenant.
    Tenant(TenantId),
    /// A project.
    Project(ProjectId),
}

/// The membership that an invite gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InviteTo {
    /// A member of a tenant.
    Tenant {
        /// Login of the tenant.
        login: TenantId,
        /// Role of the new member.
        role: TenantRole,
    },
    /// A member of a project.
    Project {
        /// Id of the project.
        id: ProjectId,
        /// Role of the new member.
        role: ProjectRole,
    },
}

/// Lets whoever is told its secret join a tenant or project, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// The key: SHA-256 of the secret.
    pub id: Digest,
    /// The secret, sealed, for its owners to look it up again; opaque here.
    #[serde(with = "blob")]
    pub sealed_secret: Vec<u8>,
    /// The membership that it gives.
    pub to: InviteTo,
    /// Login of the inviter.
    pub invited_by: String,
    /// The standing over the platform on which the invite rests. `None` means that the inviter owns
    /// the tenant or project, and the invite ends with this ownership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// End of validity, from which it is refused and deleted.
    pub expires_at: Timestamp,
}

impl fmt::Debug for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invite")
            .field("id", &self.id)
            .field("sealed_secret", &"<redacted>")
            .field("to", &self.to)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
