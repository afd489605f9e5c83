//! Commands about components, and tokens that are made for one purpose.

use proto_types::{ComponentId, MachineId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use super::CreateToken;
use crate::entities::{ComponentKind, ComponentVersion, TokenComponent};

/// See [`Op::ReportComponent`](crate::Op::ReportComponent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportComponent {
    /// The key that it gets when it is new.
    pub id: ComponentId,
    /// What it is.
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

/// See [`Op::CreateComponentToken`](crate::Op::CreateComponentToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateComponentToken {
    /// The token, without roles.
    pub token: CreateToken,
    /// For which component.
    pub component: TokenComponent,
}

/// See [`Op::CreateMachineToken`](crate::Op::CreateMachineToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateMachineToken {
    /// The token, with a role on the machine alone.
    pub token: CreateToken,
    /// Which machine boots.
    pub machine: MachineId,
}
