//! Actions of BMCs.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// An action of a BMC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
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
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
