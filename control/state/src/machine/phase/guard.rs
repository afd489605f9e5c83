//! Guards: conditions of a transition beside the phase.

use super::limits::STEP_ATTEMPTS_MAX;
use crate::machine::entity::{Availability, Machine, Segment};

/// A condition of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseGuard {
    /// No condition.
    Always,
    /// No disk holds data.
    IsClean,
    /// A project has the machine.
    IsAllocated,
    /// The image of the allocation is on its disk.
    IsInstalled,
    /// The machine is neither tainted nor locked.
    IsAvailable,
    /// The machine is available and its ports are not isolated.
    IsReachable,
    /// The machine's reason is empty.
    HasNoReason,
    /// Hammer may still run, and attempts to power-cycle it are left.
    HammerIsThere,
    /// The step may be tried again.
    HasAttemptsLeft,
    /// The step was tried as often as it may.
    HasNoAttemptsLeft,
}

impl PhaseGuard {
    /// `true` if the guard holds for a machine.
    pub(crate) fn holds(self, machine: &Machine) -> bool {
        let allocation = machine.allocation.as_ref();
        let is_available = machine.condition.state == Availability::Available;
        match self {
            Self::Always => true,
            Self::IsClean => !machine.dirty,
            Self::IsAllocated => allocation.is_some(),
            Self::IsInstalled => {
                allocation.is_some_and(|allocation| allocation.install.installed_at.is_some())
            }
            Self::IsAvailable => is_available,
            // Ports of an isolated machine carry nothing: a registration in its name comes from
            // somewhere else.
            Self::IsReachable => is_available && machine.segment != Segment::Isolated,
            Self::HasNoReason => machine.reason.is_empty(),
            // One more than the attempts: the last pass only writes the reason that they are used
            // up.
            Self::HammerIsThere => {
                machine.segment != Segment::Tenant && machine.step_attempts <= STEP_ATTEMPTS_MAX
            }
            Self::HasAttemptsLeft => machine.step_attempts < STEP_ATTEMPTS_MAX,
            Self::HasNoAttemptsLeft => machine.step_attempts >= STEP_ATTEMPTS_MAX,
        }
    }

    /// Label in the diagram; `None` means no condition.
    pub(super) const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Always => None,
            Self::IsClean => Some("clean"),
            Self::IsAllocated => Some("allocated"),
            Self::IsInstalled => Some("installed"),
            Self::IsAvailable => Some("available"),
            Self::IsReachable => Some("available, not isolated"),
            Self::HasNoReason => Some("no other reason"),
            Self::HammerIsThere => Some("hammer may run"),
            Self::HasAttemptsLeft => Some("attempts left"),
            Self::HasNoAttemptsLeft => Some("no attempts left"),
        }
    }
}
