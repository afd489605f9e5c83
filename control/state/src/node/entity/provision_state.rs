//! The provision states of Ironic 39.0.0.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A provision state. The names are those of Ironic's API.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum ProvisionState {
    Enroll,
    Verifying,
    Manageable,
    Available,
    Active,
    Error,
    Rescue,
    Deploying,
    #[strum(serialize = "wait call-back")]
    DeployWait,
    #[strum(serialize = "deploy failed")]
    DeployFailed,
    #[strum(serialize = "deploy hold")]
    DeployHold,
    Deleting,
    Cleaning,
    #[strum(serialize = "clean wait")]
    CleanWait,
    #[strum(serialize = "clean failed")]
    CleanFailed,
    #[strum(serialize = "clean hold")]
    CleanHold,
    Inspecting,
    #[strum(serialize = "inspect wait")]
    InspectWait,
    #[strum(serialize = "inspect failed")]
    InspectFailed,
    Adopting,
    #[strum(serialize = "adopt failed")]
    AdoptFailed,
    Rescuing,
    #[strum(serialize = "rescue wait")]
    RescueWait,
    #[strum(serialize = "rescue failed")]
    RescueFailed,
    Unrescuing,
    #[strum(serialize = "unrescue failed")]
    UnrescueFailed,
    Servicing,
    #[strum(serialize = "service wait")]
    ServiceWait,
    #[strum(serialize = "service failed")]
    ServiceFailed,
    #[strum(serialize = "service hold")]
    ServiceHold,
}

impl ProvisionState {
    /// Name on the wire.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// `true` if a machine whose node a verb left in this state is on offer to nobody. A machine that is
    /// provided is on offer once it was wiped, and one in use is somebody's anyway, so that these stages
    /// need no further verb.
    pub const fn withholds(self) -> bool {
        !self.is_in_use() && !matches!(self, Self::CleanWait)
    }

    /// `true` for the states of a node in use: it is rescued or serviced, and stays allocated.
    pub const fn is_in_use(self) -> bool {
        matches!(
            self,
            Self::Rescue
                | Self::Rescuing
                | Self::RescueWait
                | Self::RescueFailed
                | Self::Unrescuing
                | Self::UnrescueFailed
                | Self::Servicing
                | Self::ServiceWait
                | Self::ServiceFailed
                | Self::ServiceHold
        )
    }
}
