//! Actions of BMCs.

use serde::{Deserialize, Serialize};

/// An action of a BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BmcAction {
    /// Power on.
    PowerOn,
    /// Power off, hard.
    PowerOff,
    /// Reset.
    PowerReset,
    /// Power off and on.
    PowerCycle,
    /// Boot from the network until told otherwise.
    BootPxe,
    /// Boot from disk until told otherwise.
    BootDisk,
    /// Boot into the firmware's menu, once.
    BootBios,
    /// Identify LED on.
    LedOn,
    /// Identify LED off.
    LedOff,
    /// The agent makes a nonce and writes it where only the machine of the BMC can read it.
    SetNonce,
}

impl BmcAction {
    /// Short name for people.
    pub const fn as_str(self) -> &'static str {
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
            Self::SetNonce => "set-nonce",
        }
    }
}
