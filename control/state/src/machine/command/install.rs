//! Reports of hammer on wipes and installations.

use std::fmt;

use proto_types::{AllocationId, MachineId};
use serde::{Deserialize, Serialize};

use crate::machine::entity::DiskWipe;

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
