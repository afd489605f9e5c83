//! Phases of a machine on its way to a tenant and back.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Phase of a machine's life. With `since` and `reason` it is all that an operator needs to see,
/// and all that control needs to resume after a restart.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum Phase {
    /// Seen, never registered.
    New,
    /// Registered, its disks are being wiped.
    Wiping,
    /// Clean and registered: on offer as soon as hammer reports `Waiting`.
    Waiting,
    /// Allocated; hammer installs.
    Installing,
    /// Installed; the BMC is told to boot from disk.
    BootOrder,
    /// Hammer is told to reboot; the installed system comes up.
    Rebooting,
    /// The installed system phoned home; a switch has not reported a port in the tenant's segment
    /// yet. From feature level 2.
    TenantPorts,
    /// The installed system phoned home, and the switches reported its ports.
    Running,
    /// Freed; the BMC is told to power off. The allocation is still complete.
    ReclaimPowerOff,
    /// Powered off; the switch moves the port. The allocation keeps its addresses and AS number
    /// until the switch reports the move.
    ReclaimPorts,
    /// The BMC is told to boot from the network and to power on.
    ReclaimBoot,
    /// Powered on; hammer has to come up and register.
    ReclaimRegister,
    /// Held out of service; an operator has to look. See [`HoldCause`].
    Held(HoldCause),
}

impl Phase {
    /// Short name for people.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
    /// `true` if the machine is on its way back from a tenant.
    pub const fn is_reclaim(self) -> bool {
        matches!(
            self,
            Self::ReclaimPowerOff | Self::ReclaimPorts | Self::ReclaimBoot | Self::ReclaimRegister
        )
    }
}

/// Cause of a hold.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
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

impl HoldCause {
    /// Short name in the diagram.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
