//! Tenants, projects and who belongs to them.

use std::collections::BTreeMap;
use std::fmt;

use proto_types::{Digest, ProjectId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use super::Warrant;
use crate::blob;
use crate::meta::Meta;

/// What a member may do in a tenant; exact sets, not a ladder (the contract's table decides).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantRole {
    /// Everything.
    Owner,
    /// Changes.
    Editor,
    /// Reads.
    Viewer,
    /// Sees that the tenant exists: a member of one of its projects only.
    Guest,
}

/// What a member may do in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectRole {
    /// Everything.
    Owner,
    /// Changes.
    Editor,
    /// Reads.
    Viewer,
}

/// A membership; the member's login is the key of the map it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member<R> {
    /// What the member may do.
    pub role: R,
    /// Since when.
    pub created_at: Timestamp,
}

/// Someone who pays: a person or an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Login: the key.
    pub login: TenantId,
    /// Head.
    pub meta: Meta,
    /// Shown name.
    pub name: String,
    /// Mail address; empty when unknown.
    #[serde(default)]
    pub email: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Where a picture is; empty without one.
    #[serde(default)]
    pub avatar_url: String,
    /// Login of the creator.
    #[serde(default)]
    pub created_by: String,
    /// Members by login.
    #[serde(default)]
    pub members: BTreeMap<TenantId, Member<TenantRole>>,
}

/// What machines, networks and addresses belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// The key.
    pub id: ProjectId,
    /// Head.
    pub meta: Meta,
    /// Shown name, unique in its tenant.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// Where a picture is.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Direct members by login; members of the tenant are inherited and not listed here.
    #[serde(default)]
    pub members: BTreeMap<TenantId, Member<ProjectRole>>,
}

/// What an invite makes of whoever accepts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InviteTo {
    /// A member of a tenant.
    Tenant {
        /// Which.
        login: TenantId,
        /// What the member may do.
        role: TenantRole,
    },
    /// A member of a project.
    Project {
        /// Which.
        id: ProjectId,
        /// What the member may do.
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
    /// What for.
    pub to: InviteTo,
    /// Login of who invites.
    pub invited_by: String,
    /// The standing over the platform on which it rests; `None` means that who invites owns the
    /// place, and the invite ends with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<Warrant>,
    /// When.
    pub created_at: Timestamp,
    /// Refused after this, and forgotten.
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
