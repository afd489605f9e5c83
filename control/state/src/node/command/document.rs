//! Commands about documents.

use proto_types::ProjectId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::node::entity::{DocumentKind, JsonFields};

/// See [`Op::SetNodeDocument`](crate::Op::SetNodeDocument).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetNodeDocument {
    /// The document.
    pub id: Uuid,
    /// Its kind, which never changes.
    pub kind: DocumentKind,
    /// Generation of the document that the caller read, 0 for a new one. Another one refuses the
    /// change.
    pub expected: u64,
    /// Name; empty means none.
    #[serde(default)]
    pub name: String,
    /// The project that it belongs to. `None` means the site.
    #[serde(default)]
    pub owner: Option<ProjectId>,
    /// `true` if every project may use it.
    #[serde(default)]
    pub public: bool,
    /// Its other fields, all of them.
    #[serde(default)]
    pub fields: JsonFields,
}

/// See [`Op::DeleteNodeDocument`](crate::Op::DeleteNodeDocument).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteNodeDocument {
    /// The document.
    pub id: Uuid,
}
