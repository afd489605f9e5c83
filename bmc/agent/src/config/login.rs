//! The credentials of BMCs.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;

/// User and password.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("password", &"<redacted>")
            .finish()
    }
}

/// The credentials file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    default: Option<Login>,
    #[serde(default)]
    bmc: BTreeMap<IpAddr, Login>,
}

impl Credentials {
    /// The login of one BMC: its own, else the default.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> Option<&Login> {
        self.bmc.get(&address).or(self.default.as_ref())
    }
}
