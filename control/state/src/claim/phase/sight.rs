//! The machine of a host as a claim sees it, and the event that follows from it.

use crate::claim::entity::ClaimState;
use crate::claim::phase::ClaimEvent;
use crate::machine::entity::{ClaimGrant, HoldCause, Machine, Phase};

/// The machine of a bound host, in the words of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(strum::VariantArray))]
pub(crate) enum HostSight {
    /// There is no such machine any more, or it is another one's.
    Missing,
    /// Nobody has it, its disks are clean, and it can be installed.
    Clean,
    /// Nobody has it, and it is on its way to be clean.
    Cleaning,
    /// A disk could not be wiped.
    Unwipeable,
    /// The image of the claim is being installed.
    Installing,
    /// The installation failed for good.
    InstallFailed,
    /// The installed system of the claim runs.
    Running,
    /// The tenancy is over, and not yet wound up.
    Leaving,
}

impl HostSight {
    /// Looks at a machine for the claim that was granted it.
    pub(crate) fn of(machine: Option<&Machine>, grant: ClaimGrant) -> Self {
        let Some(machine) = machine else {
            return Self::Missing;
        };
        match &machine.allocation {
            Some(allocation) if allocation.claim != Some(grant) => Self::Missing,
            Some(_) if machine.is_leaving() => Self::Leaving,
            Some(_) => match machine.phase {
                Phase::Running => Self::Running,
                Phase::Held(HoldCause::Install) => Self::InstallFailed,
                _ => Self::Installing,
            },
            None => match machine.phase {
                Phase::Waiting if !machine.dirty => Self::Clean,
                Phase::Held(HoldCause::Wipe) => Self::Unwipeable,
                _ => Self::Cleaning,
            },
        }
    }
}

/// The event that a sight of the host makes in a state of the claim. `None` means that it makes
/// none.
pub(crate) const fn event_of(state: ClaimState, sight: HostSight) -> Option<ClaimEvent> {
    if !state.has_host() {
        return None;
    }
    match (state, sight) {
        (_, HostSight::Missing | HostSight::Unwipeable) => Some(ClaimEvent::HostLost),
        (ClaimState::Provisioning, HostSight::Running) => Some(ClaimEvent::HostRuns),
        // Somebody else freed the machine: an administrator, who may free a dead one.
        (
            ClaimState::Provisioning | ClaimState::Active,
            HostSight::Leaving | HostSight::Cleaning | HostSight::Clean,
        ) => Some(ClaimEvent::HostLost),
        (ClaimState::Deprovisioning | ClaimState::Releasing, HostSight::Clean) => {
            Some(ClaimEvent::HostClean)
        }
        _ => None,
    }
}
