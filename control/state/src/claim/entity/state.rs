//! States of a claim.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// State of a claim. A failure is a condition and no state: it never keeps a claim from being
/// deleted.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum ClaimState {
    /// It waits for a host.
    #[default]
    Pending,
    /// It has a clean host without a system.
    Bound,
    /// The image is being installed.
    Provisioning,
    /// The installed system runs, or is off because the claim wants so.
    Active,
    /// The image was taken away: the host is being wiped, and stays with the claim.
    Deprovisioning,
    /// The claim was deleted: the host is being wiped.
    Releasing,
    /// The host was taken away.
    Lost,
    /// The claim is over. Its record is kept for a day.
    Gone,
}

impl ClaimState {
    /// Short name for people.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// `true` if a host is bound to the claim.
    pub const fn has_host(self) -> bool {
        matches!(
            self,
            Self::Bound
                | Self::Provisioning
                | Self::Active
                | Self::Deprovisioning
                | Self::Releasing
        )
    }
}

impl fmt::Display for ClaimState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
