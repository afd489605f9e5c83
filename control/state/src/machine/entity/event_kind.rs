//! Kinds of provisioning events.

use std::fmt;
use std::str::FromStr;

use proto_errors::Error;
use serde::{Deserialize, Serialize};

/// Kind of a provisioning event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EventKind {
    /// Hammer runs: a heartbeat.
    Alive,
    /// Hammer gave up.
    Crashed,
    /// The machine asked pixie for a boot.
    PxeBooting,
    /// A reboot was ordered from the BMC.
    PlannedReboot,
    /// Hammer started.
    Preparing,
    /// Hammer reads the inventory.
    Registering,
    /// Hammer waits for an allocation.
    Waiting,
    /// Hammer installs.
    Installing,
    /// Hammer reboots into the installed system.
    BootingNewKernel,
    /// The installed system runs.
    PhonedHome,
    /// The machine was freed.
    MachineReclaim,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Alive,
        Self::Crashed,
        Self::PxeBooting,
        Self::PlannedReboot,
        Self::Preparing,
        Self::Registering,
        Self::Waiting,
        Self::Installing,
        Self::BootingNewKernel,
        Self::PhonedHome,
        Self::MachineReclaim,
    ];

    /// Name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "Alive",
            Self::Crashed => "Crashed",
            Self::PxeBooting => "PXE Booting",
            Self::PlannedReboot => "Planned Reboot",
            Self::Preparing => "Preparing",
            Self::Registering => "Registering",
            Self::Waiting => "Waiting",
            Self::Installing => "Installing",
            Self::BootingNewKernel => "Booting New Kernel",
            Self::PhonedHome => "Phoned Home",
            Self::MachineReclaim => "Machine Reclaim",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| Error::invalid("event", format!("\"{text}\" is not a known event")))
    }
}
