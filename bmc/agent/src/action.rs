//! Operations on a machine and its power state.

use crate::nonce::Nonce;

/// An operation on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    PowerOn,
    PowerOff,
    PowerReset,
    PowerCycle,
    BootPxe,
    BootDisk,
    BootBios,
    LedOn,
    LedOff,
    /// Writes it into the asset tag.
    SetNonce(Nonce),
}

impl Action {
    /// Short name for monitoring.
    #[must_use]
    pub const fn step(self) -> &'static str {
        match self {
            Self::PowerOn => "power-on",
            Self::PowerOff => "power-off",
            Self::PowerReset => "power-reset",
            Self::PowerCycle => "power-cycle",
            Self::BootPxe => "boot-pxe",
            Self::BootDisk => "boot-disk",
            Self::BootBios => "boot-bios",
            Self::LedOn => "led-on",
            Self::LedOff => "led-off",
            Self::SetNonce(_) => "set-nonce",
        }
    }

    /// `true` if a repetition changes nothing.
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::PowerReset | Self::PowerCycle)
    }
}

/// The power state of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Power {
    On,
    Off,
    #[default]
    Unknown,
}

impl Power {
    /// As control reads it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Unknown => "unknown",
        }
    }
}
