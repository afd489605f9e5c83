//! The operating systems of switches.

use serde::Deserialize;

/// Operating system of the switch, which chooses the back-end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchOs {
    /// Linux with netlink.
    #[default]
    Linux,
    /// SONiC with its databases.
    Sonic,
}
