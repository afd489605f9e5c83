//! Reports of boot servers, hammer and installed systems.

use proto_types::{MacAddr, MachineId, PartitionId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{EventKind, RelayedPort};

/// See [`Op::MachineSeen`](crate::Op::MachineSeen).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineSeen {
    /// The machine.
    pub id: MachineId,
    /// Partition of pixie.
    pub partition: PartitionId,
    /// MAC address of the request; `None` if the boot server does not report it.
    #[serde(default)]
    pub mac: Option<MacAddr>,
    /// Time of the packet by control's clock. In the past if pixie kept the report while control
    /// was away.
    pub seen_at: Timestamp,
    /// Time of the packet as pixie stated it, which identifies a repeated report. `None` if the
    /// boot server reports each boot once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_at: Option<Timestamp>,
    /// `true` if control did not answer in time, and pixie sent the machine to its disk by the last
    /// answer it knew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_disk: bool,
    /// The port that the card's lease was asked for at, as the relay of its switch says. `None` if
    /// no relay said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedPort>,
}

/// See [`Op::MachineEvent`](crate::Op::MachineEvent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineEvent {
    /// The machine.
    pub id: MachineId,
    /// Kind of the event.
    pub kind: EventKind,
    /// The sender's message.
    #[serde(default)]
    pub message: String,
    /// The sender's time as stated, which identifies a repeated report. The recorded time is
    /// clamped.
    pub time: Timestamp,
}

/// See [`Op::PhoneHome`](crate::Op::PhoneHome).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhoneHome {
    /// The machine.
    pub id: MachineId,
    /// Project of the caller's certificate, which must be the one that has the machine.
    pub project: ProjectId,
    /// The sender's message: kernel, uptime.
    #[serde(default)]
    pub message: String,
    /// The sender's time.
    pub time: Timestamp,
}
