//! Kinds of provisioning events.

use std::fmt;

use proto_errors::Error;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Kind of a provisioning event.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    EnumString,
    VariantArray,
)]
#[strum(
    serialize_all = "title_case",
    parse_err_ty = Error,
    parse_err_fn = unknown_event
)]
pub enum EventKind {
    /// Hammer runs: a heartbeat.
    Alive,
    /// Hammer gave up.
    Crashed,
    /// The machine asked pixie for a boot.
    #[strum(serialize = "PXE Booting")]
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
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

fn unknown_event(text: &str) -> Error {
    Error::invalid("event", format!("\"{text}\" is not a known event"))
}
