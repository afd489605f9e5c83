use thiserror::Error;

use crate::problem::SwitchObject;

/// The reason why a step does not fit the state of the switch. No plan has such a step.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StepError {
    /// The step needs an object that does not exist.
    #[error("{0} does not exist")]
    Missing(SwitchObject),
    /// The step would take away what an object still uses.
    #[error("{0} is in use")]
    InUse(SwitchObject),
    /// The object exists and would have to be removed first.
    #[error("{0} has to be removed first")]
    Exists(SwitchObject),
    /// Another object has the VLAN, VNI or table.
    #[error("{0} has the same VLAN, VNI or table")]
    Taken(SwitchObject),
    /// A VRF would let its ports reach the switch itself.
    #[error("{0} leads into the underlay")]
    Unguarded(SwitchObject),
    /// The port is not in quarantine, or the place is none that a port can enter.
    #[error("{0} cannot enter this place from where it is")]
    NotQuarantined(SwitchObject),
    /// The neighbour has no filter, or its port is in another place.
    #[error("{0} has no filter, or its port is in another place")]
    Unfiltered(SwitchObject),
}
