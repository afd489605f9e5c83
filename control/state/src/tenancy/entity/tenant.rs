//! Tenants and their members.

use std::collections::BTreeMap;

use proto_types::{TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// Role of a member in a tenant; exact sets, not a ladder (the contract's table decides).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantRole {
    /// Reads, changes, and manages members.
    Owner,
    /// Reads and changes.
    Editor,
    /// Reads only.
    Viewer,
    /// Sees that the tenant exists. The role of members of one of its projects only.
    Guest,
}

/// A membership; the member's login is the key of the map it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member<R> {
    /// Role of the member.
    pub role: R,
    /// Time at which the member was added.
    pub created_at: Timestamp,
}

/// Someone who pays: a person or an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// The key: login.
    pub login: TenantId,
    /// Labels, times and generation.
    pub meta: Meta,
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
    /// Login of the creator.
    #[serde(default)]
    pub created_by: String,
    /// Members by login.
    #[serde(default)]
    pub members: BTreeMap<TenantId, Member<TenantRole>>,
}
