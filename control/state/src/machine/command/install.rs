//! Reports of hammer on wipes and installations.

use std::fmt;

use proto_types::{AllocationId, MachineId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::DiskWipe;

/// See [`Op::WipeDone`](crate::Op::WipeDone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WipeDone {
    /// The machine.
    pub id: MachineId,
    /// Wipes of the disks.
    pub disks: Vec<DiskWipe>,
}

/// See [`Op::InstallDone`](crate::Op::InstallDone).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallDone {
    /// The machine.
    pub id: MachineId,
    /// The allocation that was installed.
    pub allocation: AllocationId,
    /// Error; `None` means success.
    #[serde(default)]
    pub error: Option<String>,
    /// The step that failed; empty on success.
    #[serde(default)]
    pub step: String,
    /// `true` if another attempt may succeed.
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
