//! Boot devices and their override, with the words of Redfish.

/// The boot device of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootTarget {
    Pxe,
    Disk,
    BiosSetup,
}

impl BootTarget {
    /// The value of `BootSourceOverrideTarget`.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Pxe => "Pxe",
            Self::Disk => "Hdd",
            Self::BiosSetup => "BiosSetup",
        }
    }
}

/// A boot device and the duration of its override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootOverride {
    pub target: BootTarget,
    /// `true` means for all boots, `false` for the next boot only.
    pub persistent: bool,
}
