//! Commands about components.

use proto_types::{ComponentId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use crate::cluster::entity::{ComponentKind, ComponentVersion};

/// See [`Op::ReportComponent`](crate::Op::ReportComponent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportComponent {
    /// The key that it gets when it is new.
    pub id: ComponentId,
    /// Kind of the component.
    pub kind: ComponentKind,
    /// Which one.
    pub identifier: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// How often it reports, milliseconds.
    pub interval_ms: u64,
    /// Its version.
    pub version: ComponentVersion,
    /// The token that it uses.
    pub token: TokenId,
}

/// See [`Op::DeleteComponent`](crate::Op::DeleteComponent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteComponent {
    /// Which.
    pub id: ComponentId,
}
