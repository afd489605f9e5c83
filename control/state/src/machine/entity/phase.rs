//! Where a machine stands on its way to a tenant and back.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a machine stands in its life. With `since` and `reason` it is all that a person needs to
/// see, and all that control needs to go on after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Seen, never registered.
    New,
    /// Registered, its disks are being wiped.
    Wiping,
    /// Clean and registered: on offer as soon as it says "Waiting".
    Waiting,
    /// Allocated; hammer installs.
    Installing,
    /// Installed; the BMC is told to boot from disk.
    BootOrder,
    /// Hammer is told to reboot; the installed system comes up.
    Rebooting,
    /// The installed system phoned home.
    Running,
    /// Freed; the BMC is told to power off. Everything of the allocation is still there.
    ReclaimPowerOff,
    /// Powered off; the switch moves the port. The allocation keeps its numbers until the switch
    /// reports that.
    ReclaimPorts,
    /// The BMC is told to boot from the network and to power on.
    ReclaimBoot,
    /// Powered on; hammer has to come up and register.
    ReclaimRegister,
    /// Held out of service; a person has to look. See [`HoldCause`].
    Held(HoldCause),
}

impl Phase {
    /// Short name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Wiping => "wiping",
            Self::Waiting => "waiting",
            Self::Installing => "installing",
            Self::BootOrder => "boot-order",
            Self::Rebooting => "rebooting",
            Self::Running => "running",
            Self::ReclaimPowerOff => "reclaim-power-off",
            Self::ReclaimPorts => "reclaim-ports",
            Self::ReclaimBoot => "reclaim-boot",
            Self::ReclaimRegister => "reclaim-register",
            Self::Held(_) => "held",
        }
    }
    /// Whether the machine is on its way back from a tenant.
    pub const fn is_reclaim(self) -> bool {
        matches!(
            self,
            Self::ReclaimPowerOff | Self::ReclaimPorts | Self::ReclaimBoot | Self::ReclaimRegister
        )
    }
}

/// Why a machine is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldCause {
    /// The installation failed for good; the allocation is still there. Way out: free it.
    Install,
    /// A disk could not be wiped. Way out: an admin sets it available, and it is wiped again.
    Wipe,
    /// The BMC did not do its part of a reclaim; the port is isolated when the power could not be
    /// cut. Way out: an admin sets it available, and the reclaim starts over.
    Bmc,
    /// A switch did not report that it moved a port of a machine that was powered off. Way out:
    /// the report, or an admin sets it available; the reclaim starts over.
    Ports,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
