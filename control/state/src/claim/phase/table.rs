//! The transition table of claims.

use crate::claim::entity::ClaimState;

/// An event that may change the state of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(strum::VariantArray))]
pub(crate) enum ClaimEvent {
    /// A host was bound.
    HostBound,
    /// The host was allocated with the claim's image.
    Allocated,
    /// The installed system runs.
    HostRuns,
    /// The project took the image away.
    ImageRemoved,
    /// The host is verified to be clean.
    HostClean,
    /// The host was taken away, or is in quarantine.
    HostLost,
    /// The project deleted the claim.
    Deleted,
    /// A lost claim waits for another host.
    Rebound,
}

/// The state after an event. `None` means that the event does not count in the state.
pub(crate) const fn next(state: ClaimState, event: ClaimEvent) -> Option<ClaimState> {
    use ClaimEvent::{
        Allocated, Deleted, HostBound, HostClean, HostLost, HostRuns, ImageRemoved, Rebound,
    };
    use ClaimState::{Active, Bound, Deprovisioning, Gone, Lost, Pending, Provisioning, Releasing};
    Some(match (state, event) {
        (Pending, HostBound) | (Deprovisioning, HostClean) => Bound,
        (Bound, Allocated) => Provisioning,
        (Provisioning, HostRuns) => Active,
        (Provisioning | Active, ImageRemoved) => Deprovisioning,
        (Bound | Provisioning | Active | Deprovisioning, HostLost) => Lost,
        (Bound | Provisioning | Active | Deprovisioning, Deleted) => Releasing,
        // Without a host nothing is left to be done. A host in quarantine is the administrator's.
        (Pending | Lost, Deleted) | (Releasing, HostClean | HostLost) => Gone,
        (Lost, Rebound) => Pending,
        _ => return None,
    })
}
