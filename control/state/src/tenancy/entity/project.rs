//! Projects and the roles in them.

use std::collections::BTreeMap;

use proto_types::{ProjectId, TenantId};
use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::tenancy::entity::Member;

/// Role of a member in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectRole {
    /// Reads, changes, and manages members.
    Owner,
    /// Reads and changes.
    Editor,
    /// Reads only.
    Viewer,
}

/// The owner of machines, networks and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// The key.
    pub id: ProjectId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Display name, unique in its tenant.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// URL of a picture. `None` means none.
    #[serde(default)]
    pub avatar_url: Option<String>,
    /// Direct members by login; members of the tenant are inherited and not listed here.
    #[serde(default)]
    pub members: BTreeMap<TenantId, Member<ProjectRole>>,
}
