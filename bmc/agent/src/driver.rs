//! What is asked of a BMC, whatever it speaks; a trait, so that orders are tested without one.

use futures::future::BoxFuture;
use proto_types::MachineId;
use strum::IntoStaticStr;
use tokio::time::Instant;

use crate::config::Target;
use crate::nonce::Nonce;

/// What to do with a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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
    pub fn step(self) -> &'static str {
        self.into()
    }

    /// Whether doing it again changes nothing.
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::PowerReset | Self::PowerCycle)
    }
}

/// Whether a machine is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
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
        self.into()
    }
}

/// What was read of a BMC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// UUIDs that the machine may have, the likeliest first: IPMI leaves the order of bytes open.
    pub machines: Vec<MachineId>,
    /// "redfish" or "ipmi".
    pub interface: &'static str,
    /// The port that answered.
    pub port: u16,
    pub mac: String,
    /// The user that it was read as.
    pub user: String,
    pub bmc_version: String,
    pub bios_version: String,
    pub power: Power,
    /// "on", "off", "blinking" or empty.
    pub led: &'static str,
    pub fru: proto_mesh::Fru,
    /// Power draw and supplies; empty when the BMC does not tell. `None` when they could not be read
    /// this time, which never makes a reading fail.
    pub draw: Option<proto_mesh::PowerDraw>,
}

/// Why a BMC did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The BMC was not reached; nothing was done.
    #[error("{0}")]
    Unreached(String),
    /// The BMC did not answer in the middle: it may have been done.
    #[error("{0}")]
    Unsure(String),
    /// The BMC said no, or the machine cannot.
    #[error("{0}")]
    Refused(String),
}

/// Speaks to BMCs.
pub trait Driver: Send + Sync + 'static {
    /// Reads a BMC and the machine behind it.
    fn read<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<Reading, DriveError>>;

    /// Does something once and waits until it shows, up to a time. Returns the power afterwards.
    fn act<'a>(
        &'a self,
        target: &'a Target,
        action: Action,
        until: Instant,
    ) -> BoxFuture<'a, Result<Power, DriveError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_do_not_change() {
        for (action, name) in [
            (Action::PowerOn, "power-on"),
            (Action::PowerOff, "power-off"),
            (Action::PowerReset, "power-reset"),
            (Action::PowerCycle, "power-cycle"),
            (Action::BootPxe, "boot-pxe"),
            (Action::BootDisk, "boot-disk"),
            (Action::BootBios, "boot-bios"),
            (Action::LedOn, "led-on"),
            (Action::LedOff, "led-off"),
            (Action::SetNonce(Nonce::generate()), "set-nonce"),
        ] {
            assert_eq!(action.step(), name);
        }
    }

    #[test]
    fn power_states_in_reports_do_not_change() {
        let states = [Power::On, Power::Off, Power::Unknown].map(Power::as_str);
        assert_eq!(states, ["on", "off", "unknown"]);
    }
}
