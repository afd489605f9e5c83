//! Commands that take a switch out of service.

use proto_types::SwitchId;
use serde::{Deserialize, Serialize};

/// See [`Op::MigrateSwitch`](crate::Op::MigrateSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MigrateSwitch {
    /// The switch that the cables are on record at.
    pub from: SwitchId,
    /// The switch that gets the cables, each at the port of the same name.
    pub to: SwitchId,
}

/// See [`Op::DeleteSwitch`](crate::Op::DeleteSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteSwitch {
    /// The switch to delete.
    pub id: SwitchId,
    /// `true` deletes the switch although machines are cabled to it.
    #[serde(default)]
    pub force: bool,
}
