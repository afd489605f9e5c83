//! The phases of a machine as one transition table.
//!
//! Nothing else sets a machine's phase: [`enter`] looks the event up in the [`table`], so that a
//! transition that is not listed cannot happen. The tick takes its deadlines from the same rows,
//! and the page on the life of a machine shows them as a diagram.

mod diagram;
mod effect;
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
pub(crate) use transition::{Deadline, DeadlineClock, Transition};

use crate::machine::entity::{Machine, Phase};

/// The transition that an event makes from the machine's phase. `None` means that the table does
/// not list it, or that its guard does not hold.
pub(crate) fn transition_of(machine: &Machine, event: PhaseEvent) -> Option<&'static Transition> {
    next(machine.phase, event).filter(|row| row.guard.holds(machine))
}

/// Takes a machine into the phase that an event leads to. Time, reason and attempts begin anew, and
/// the effect on the machine's own row is carried out. Orders to the BMC are the caller's, because
/// they need the whole transaction.
pub(crate) fn enter(
    machine: &mut Machine,
    event: PhaseEvent,
    now: Timestamp,
    reason: impl Into<String>,
) {
    // A caller that did not check the guard is a bug, and must not stop the replicas: each of them
    // would fail at the same log entry for ever.
    let Some(row) = transition_of(machine, event) else {
        debug_assert!(false, "{event:?} leads nowhere from {:?}", machine.phase);
        return;
    };
    machine.phase = row.next;
    machine.since = now;
    machine.reason = reason.into();
    machine.step_attempts = 0;
    // The call that set the machine on its way ends here: later steps belong to other traces.
    if matches!(row.next, Phase::Running | Phase::Waiting) {
        machine.trace = None;
    }
    row.effect.change(machine);
}
