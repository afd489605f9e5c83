//! Operations on a machine and its power state.

use strum::IntoStaticStr;

use crate::nonce::Nonce;

/// An operation on a machine.
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

    /// `true` if a repetition changes nothing.
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        !matches!(self, Self::PowerReset | Self::PowerCycle)
    }
}

/// The power state of a machine.
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
