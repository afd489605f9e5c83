//! Reports of machines, hammer and boot servers.

use std::fmt;

use proto_types::{AllocationId, MacAddr, MachineId, PartitionId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{Bios, DiskWipe, EventKind, Fru, Hardware};

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

/// See [`Op::RegisterMachine`](crate::Op::RegisterMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterMachine {
    /// Which.
    pub id: MachineId,
    /// Where it is when nobody has seen it before: it is made with this change, as
    /// [`Op::MachineSeen`](crate::Op::MachineSeen) would have made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_in: Option<PartitionId>,
    /// Version of hammer.
    #[serde(default)]
    pub hammer_version: String,
    /// Changes with each boot.
    pub boot_id: String,
    /// What it is made of.
    pub hardware: Hardware,
    /// Firmware's identity.
    #[serde(default)]
    pub bios: Bios,
    /// Field-replaceable-unit data as seen in band.
    #[serde(default)]
    pub fru: Fru,
    /// Address of the BMC as seen in band; empty without one.
    #[serde(default)]
    pub bmc_address: String,
    /// MAC address of the BMC as seen in band.
    #[serde(default)]
    pub bmc_mac: String,
    /// Firmware version of the BMC as seen in band.
    #[serde(default)]
    pub bmc_version: String,
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

/// See [`Op::WipeDone`](crate::Op::WipeDone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WipeDone {
    /// Which.
    pub id: MachineId,
    /// Disk by disk.
    pub disks: Vec<DiskWipe>,
}

/// See [`Op::InstallDone`](crate::Op::InstallDone).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallDone {
    /// Which.
    pub id: MachineId,
    /// Of which allocation.
    pub allocation: AllocationId,
    /// Why it failed; none on success.
    #[serde(default)]
    pub error: Option<String>,
    /// The step that failed.
    #[serde(default)]
    pub step: String,
    /// Whether another try may help.
    #[serde(default)]
    pub retryable: bool,
    /// The last lines of hammer's log.
    #[serde(default)]
    pub log_tail: String,
    /// Password of the console.
    #[serde(default)]
    pub console_password: String,
    /// Disk that the system is on.
    #[serde(default)]
    pub primary_disk: String,
}

impl fmt::Debug for InstallDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstallDone")
            .field("id", &self.id)
            .field("allocation", &self.allocation)
            .field("error", &self.error)
            .field("step", &self.step)
            .field("retryable", &self.retryable)
            .field("console_password", &"<redacted>")
            .finish_non_exhaustive()
    }
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
