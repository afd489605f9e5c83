//! Events that may change the phase of a machine.

/// An event that may change a machine's phase, in the order of a machine's life; events of time
/// come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(strum::VariantArray))]
pub(crate) enum PhaseEvent {
    /// Hammer registered the machine, and a disk may hold data.
    RegisteredDirty,
    /// Hammer registered the machine, and all of its disks were wiped.
    RegisteredClean,
    /// Hammer wiped every disk.
    Wiped,
    /// A disk could not be wiped.
    WipeFailed,
    /// A project got the machine.
    Allocated,
    /// Hammer installed the image.
    Installed,
    /// The installation failed for good.
    InstallFailed,
    /// The order to boot from disk ended, well or not.
    BootDiskEnded,
    /// Hammer reported that it leaves for the installed system.
    HammerLeft,
    /// The installed system phoned home.
    PhonedHome,
    /// The installed system phoned home before every switch reported its ports.
    PhonedHomeEarly,
    /// Its project, or an administrator, gave the machine back.
    Freed,
    /// The BMC powered the machine off.
    PoweredOff,
    /// The switches reported every port where it belongs.
    PortsMoved,
    /// The BMC set the boot device and powered the machine on.
    PoweredOn,
    /// The BMC did not do its part in [`STEP_ATTEMPTS_MAX`](super::STEP_ATTEMPTS_MAX) attempts.
    BmcGaveUp,
    /// An administrator made a held machine available.
    MadeAvailable,
    /// Time passed: the BMC did not confirm the boot device.
    BootOrderLate,
    /// Time passed: hammer did not report that it leaves.
    HandoverLate,
    /// Time passed: the installed system did not phone home.
    NotPhonedHome,
    /// Time passed: a switch did not report a moved port yet.
    PortsLate,
    /// Time passed: a switch never reported a moved port.
    PortsNeverMoved,
    /// Time passed without a sign of life, and the machine may be rebooted once more.
    Silent,
    /// Time passed without a sign of life, and reboots did not help.
    SilentForGood,
}

impl PhaseEvent {
    /// Label in the diagram.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::RegisteredDirty => "registered, not clean",
            Self::RegisteredClean => "registered, clean",
            Self::Wiped => "wiped",
            Self::WipeFailed => "wipe failed",
            Self::Allocated => "allocated",
            Self::Installed => "installed",
            Self::InstallFailed => "installation failed for good",
            Self::BootDiskEnded => "order to boot from disk ended",
            Self::HammerLeft => "hammer left",
            Self::PhonedHome => "phoned home",
            Self::PhonedHomeEarly => "phoned home before its ports",
            Self::Freed => "freed",
            Self::PoweredOff => "powered off",
            Self::PortsMoved => "ports moved",
            Self::PoweredOn => "powered on",
            Self::BmcGaveUp => "BMC gave up",
            Self::MadeAvailable => "made available",
            Self::BootOrderLate => "boot device not confirmed",
            Self::HandoverLate => "hammer did not leave",
            Self::NotPhonedHome => "not phoned home",
            Self::PortsLate => "ports not moved yet",
            Self::PortsNeverMoved => "ports not moved",
            Self::Silent => "silent",
            Self::SilentForGood => "reboots did not help",
        }
    }
}
