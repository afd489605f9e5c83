//! Commands that move the traffic of a switch.

use std::collections::BTreeSet;

use proto_types::SwitchId;
use serde::{Deserialize, Serialize};

/// See [`Op::DrainSwitch`](crate::Op::DrainSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrainSwitch {
    /// The switch.
    pub id: SwitchId,
    /// `true` moves its traffic away, `false` puts it into service again.
    pub drained: bool,
    /// `true` drains it also if another switch is not ready for its machines.
    #[serde(default)]
    pub force: bool,
    /// Switches whose agents have no session with control: nobody knows what they do. The leader
    /// fills it in.
    #[serde(default)]
    pub silent: BTreeSet<SwitchId>,
}
