//! Documents: objects of OpenStack's APIs that only their clients read.

use std::fmt;

use proto_types::ProjectId;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use uuid::Uuid;

use crate::meta::Meta;
use crate::node::entity::JsonFields;

/// Most documents of one kind and owner; a further one is refused.
pub const NODE_DOCUMENTS_MAX: usize = 1_000;
/// Most bytes of the fields of a document, together; a change to more is refused.
pub const NODE_DOCUMENT_BYTES_MAX: usize = 64 * 1024;

/// Kind of a document.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DocumentKind {
    /// A chassis.
    Chassis,
    /// A deploy template; its name is a trait.
    DeployTemplate,
    /// A runbook; its name is a trait.
    Runbook,
    /// A port of the network API, which nodes attach as a virtual interface.
    NetworkPort,
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDocument {
    /// The key.
    pub id: Uuid,
    /// Times and generation; no labels.
    pub meta: Meta,
    /// Its kind.
    pub kind: DocumentKind,
    /// Name; empty means none. Unique among documents of the kind, except for those whose names may
    /// repeat.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The project that it belongs to. `None` means the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ProjectId>,
    /// `true` if every project may use it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// Its other fields.
    #[serde(default, skip_serializing_if = "JsonFields::is_empty")]
    pub fields: JsonFields,
}

impl DocumentKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Chassis,
        Self::DeployTemplate,
        Self::Runbook,
        Self::NetworkPort,
    ];

    /// `true` if no two documents of the kind have one name. Ports of the network API are named by
    /// projects, which must not learn the names of others.
    pub const fn has_unique_names(self) -> bool {
        !matches!(self, Self::NetworkPort)
    }

    /// Name in messages.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for DocumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
