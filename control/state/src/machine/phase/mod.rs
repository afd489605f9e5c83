//! The phases of a machine as one table: what leads from which phase to which.
//!
//! Nothing else sets a machine's phase: [`enter`] looks the event up in the [`table`], so that a
//! transition that is not listed cannot happen. The tick takes its deadlines from the same rows,
//! and the page on the life of a machine shows them as a diagram.

mod diagram;
mod event;
mod guard;
mod limits;
mod table;
#[cfg(test)]
mod tests;
mod transition;

use proto_types::Timestamp;

pub use diagram::phase_diagram;
pub(crate) use event::PhaseEvent;
pub use limits::STEP_ATTEMPTS_MAX;
pub(crate) use table::{deadlines, next};
pub(crate) use transition::{Clock, Deadline, Transition};

use crate::machine::entity::{Machine, Phase};

/// The transition that an event makes from the machine's phase. `None` when it makes none: the
/// table does not list it, or its guard does not hold.
pub(crate) fn transition_of(machine: &Machine, event: PhaseEvent) -> Option<&'static Transition> {
    next(machine.phase, event).filter(|row| row.guard.holds(machine))
}

/// Takes a machine into the phase that an event leads to: phase, time, reason and attempts begin
/// anew, and the effect on the machine's own row is carried out. Orders to the BMC are the
/// caller's, because they need the whole transaction.
pub(crate) fn enter(
    machine: &mut Machine,
    event: PhaseEvent,
    now: Timestamp,
    reason: impl Into<String>,
) {
    let Some(row) = transition_of(machine, event) else {
        debug_assert!(false, "{event:?} leads nowhere from {:?}", machine.phase);
        return;
    };
    machine.phase = row.next;
    machine.since = now;
    machine.reason = reason.into();
    machine.step_attempts = 0;
    if matches!(row.next, Phase::Running | Phase::Waiting) {
        machine.trace = None;
    }
    row.effect.change(machine);
}
