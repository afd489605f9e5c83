//! Rows of the transition table.

use super::effect::Effect;
use super::event::PhaseEvent;
use super::guard::PhaseGuard;
use crate::machine::entity::Phase;

/// A transition of a machine, or a deadline at which it stays in its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transition {
    /// The event.
    pub(crate) event: PhaseEvent,
    /// The phase after it. The same phase means that the machine stays.
    pub(crate) next: Phase,
    /// The condition beside the phase.
    pub(crate) guard: PhaseGuard,
    /// The time after which the tick makes the event. `None` means that time does not make it.
    pub(crate) deadline: Option<Deadline>,
    /// The effect beside the phase.
    pub(crate) effect: Effect,
}

/// The time after which the tick makes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    /// Time on the clock, milliseconds.
    pub(crate) after_ms: u64,
    /// The clock that counts.
    pub(crate) clock: DeadlineClock,
}

/// The clock that a deadline reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineClock {
    /// The time since the machine entered its phase.
    InPhase,
    /// The time since the machine's last sign of life.
    Silence,
}

impl Transition {
    /// A transition without guard and effect.
    pub(super) const fn to(event: PhaseEvent, next: Phase) -> Self {
        Self {
            event,
            next,
            guard: PhaseGuard::Always,
            deadline: None,
            effect: Effect::None,
        }
    }
    /// The same with a guard.
    pub(super) const fn when(self, guard: PhaseGuard) -> Self {
        Self { guard, ..self }
    }
    /// The same with an effect.
    pub(super) const fn does(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }
    /// The same for an event that happens after a time in the phase.
    pub(super) const fn after(self, after_ms: u64) -> Self {
        let clock = DeadlineClock::InPhase;
        let deadline = Some(Deadline { after_ms, clock });
        Self { deadline, ..self }
    }
    /// The same for an event that happens after a time of silence.
    pub(super) const fn after_silence(self, after_ms: u64) -> Self {
        let clock = DeadlineClock::Silence;
        let deadline = Some(Deadline { after_ms, clock });
        Self { deadline, ..self }
    }
}
