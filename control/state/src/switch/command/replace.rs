//! Commands that take a switch out of service.

use proto_types::SwitchId;
use serde::{Deserialize, Serialize};

/// See [`Op::MigrateSwitch`](crate::Op::MigrateSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MigrateSwitch {
    /// Where the cables are.
    pub from: SwitchId,
    /// Where they go, each to the port of the same name.
    pub to: SwitchId,
}

/// See [`Op::DeleteSwitch`](crate::Op::DeleteSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteSwitch {
    /// Which.
    pub id: SwitchId,
    /// Although machines are cabled to it.
    #[serde(default)]
    pub force: bool,
}
