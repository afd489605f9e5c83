//! Power states and their changes, with the words of Redfish.

/// The power state of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    On,
    Off,
    /// Changing, paused, or not reported.
    Other,
}

/// A change of the power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    On,
    ForceOff,
    /// Requests a shutdown from the operating system.
    GracefulShutdown,
    /// Restarts without powering off.
    ForceRestart,
    /// Off, a pause, and on.
    PowerCycle,
}

impl Reset {
    /// The values of `ResetType` for this change, preferred first. Power on never becomes a restart,
    /// which fails on a machine that is off.
    pub(crate) fn values(self) -> &'static [&'static str] {
        match self {
            Self::On => &["On", "ForceOn"],
            Self::ForceOff => &["ForceOff"],
            Self::GracefulShutdown => &["GracefulShutdown"],
            Self::ForceRestart => &["ForceRestart"],
            Self::PowerCycle => &["PowerCycle", "FullPowerCycle"],
        }
    }
}
