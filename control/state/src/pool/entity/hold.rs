//! Holds of power: while there is one, the machine stays off.

use std::fmt;
use std::str::FromStr;

use proto_errors::Error;
use proto_types::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// Most holds of a claim, and of a host; a further one is refused.
pub const HOLDS_MAX: usize = 16;
/// Longest key of a hold, bytes; a longer one is refused.
pub const HOLD_KEY_BYTES_MAX: usize = 128;

/// Those who hold the power of a host. Each sets and ends its own holds only.
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
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum HoldActor {
    /// An administrator.
    Admin,
    /// A program that repairs hosts.
    Remediation,
    /// Planned work at the hardware.
    Maintenance,
}

impl HoldActor {
    /// Name in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The actor of a name.
    ///
    /// # Errors
    /// `InvalidField` for another name.
    pub fn named(name: &str) -> Result<Self, Error> {
        let rule = "must be admin, remediation or maintenance";
        Self::from_str(name).map_err(|_| Error::invalid("actor", rule))
    }
}

impl fmt::Display for HoldActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A hold of power.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerHold {
    /// Time from which it holds.
    pub at: Timestamp,
    /// Login of the caller that set it.
    pub by: String,
    /// Free text.
    #[serde(default)]
    pub reason: String,
}

/// Refuses a key of a hold that is empty, too long, or not printable.
pub(crate) fn check_hold_key(key: &str) -> Result<(), Error> {
    let is_key = (1..=HOLD_KEY_BYTES_MAX).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_key {
        return Ok(());
    }
    let rule = format!("must have 1 to {HOLD_KEY_BYTES_MAX} printable ASCII characters");
    Err(Error::invalid("key", rule))
}
