//! Commands about components.

use proto_types::{ComponentId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use crate::cluster::entity::{ComponentKind, ComponentVersion};

/// See [`Op::ReportComponent`](crate::Op::ReportComponent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportComponent {
    /// Key of the record if the component is new; otherwise the record keeps its key.
    pub id: ComponentId,
    /// Kind of the component.
    pub kind: ComponentKind,
    /// Identifier of the component, unique in its kind: a host name, mostly.
    pub identifier: String,
    /// Start of the component, as it states it.
    pub started_at: Timestamp,
    /// Time between two reports, milliseconds.
    pub interval_ms: u64,
    /// Version, as the component states it.
    pub version: ComponentVersion,
    /// The API token of the report.
    pub token: TokenId,
}

/// See [`Op::DeleteComponent`](crate::Op::DeleteComponent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteComponent {
    /// The component to delete.
    pub id: ComponentId,
}
