//! Reports of boot servers, hammer and installed systems.

use proto_types::{MacAddr, MachineId, PartitionId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::EventKind;

/// See [`Op::MachineSeen`](crate::Op::MachineSeen).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineSeen {
    /// Which.
    pub id: MachineId,
    /// Where pixie is.
    pub partition: PartitionId,
    /// Where the request came from; none when the boot server does not tell.
    #[serde(default)]
    pub mac: Option<MacAddr>,
    /// Time of the packet by control's clock; older than now when pixie kept it.
    pub seen_at: Timestamp,
    /// Time of the packet as pixie stated it, by which a repetition is known; `None` when the boot
    /// server tells each boot once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_at: Option<Timestamp>,
    /// Pixie sent it to its disk by what it knew last: control did not answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_disk: bool,
}

/// See [`Op::MachineEvent`](crate::Op::MachineEvent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineEvent {
    /// Which.
    pub id: MachineId,
    /// What happened.
    pub kind: EventKind,
    /// Said about it.
    #[serde(default)]
    pub message: String,
    /// The sender's time, as stated: a repetition is known by it. What is recorded is not beyond
    /// reason.
    pub time: Timestamp,
}

/// See [`Op::PhoneHome`](crate::Op::PhoneHome).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhoneHome {
    /// Which.
    pub id: MachineId,
    /// Of its identity: must be the project that has the machine.
    pub project: ProjectId,
    /// Said about it: kernel, uptime.
    #[serde(default)]
    pub message: String,
    /// The sender's time.
    pub time: Timestamp,
}
