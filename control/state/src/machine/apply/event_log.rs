//! The event machine: what an event makes of a machine's event log.
//!
//! The states are the events themselves; a legal event moves on, an illegal one is remembered as
//! the last error and moves on as well, so that one lost event does not wedge a machine for ever.

use proto_types::Timestamp;

use crate::machine::entity::EventKind::{
    self, Alive, BootingNewKernel, Crashed, Installing, MachineReclaim, PhonedHome, PlannedReboot,
    Preparing, PxeBooting, Registering, Waiting,
};
use crate::machine::entity::{EVENT_MESSAGE_MAX, EVENTS_MAX, Event, EventLog, Liveliness};

/// A freed machine that still phones home after this is not reclaimed, milliseconds.
pub(crate) const RECLAIM_GRACE_MS: u64 = 5 * 60_000;

/// What an event means in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// It moves on and is stored.
    Step,
    /// Only a sign of life.
    Heartbeat,
    /// The tenant's system is there although the machine was freed.
    StillThere,
    /// It does not belong here.
    Unexpected,
}

fn meaning(state: Option<EventKind>, event: EventKind) -> Meaning {
    use Meaning::{Heartbeat, Step, StillThere, Unexpected};
    let hammer = matches!(
        state,
        None | Some(PxeBooting | Preparing | Registering | Waiting | Installing | BootingNewKernel)
    );
    let step = |legal: bool| if legal { Step } else { Unexpected };
    match (event, state) {
        (MachineReclaim | PlannedReboot, _) => Step,
        (PxeBooting, Some(PxeBooting)) | (PhonedHome, Some(PhonedHome)) => Heartbeat,
        // Hammer goes on beating until the power is really cut.
        (Alive, Some(PhonedHome)) => Unexpected,
        (Alive, _) => Heartbeat,
        (Crashed, _) => step(hammer),
        (PxeBooting, _) => step(matches!(
            state,
            None | Some(PlannedReboot | MachineReclaim | Crashed)
        )),
        (Preparing, _) => step(matches!(
            state,
            None | Some(PxeBooting | PlannedReboot | MachineReclaim | Crashed)
        )),
        (Registering, _) => step(matches!(state, None | Some(Preparing))),
        (Waiting, _) => step(matches!(state, None | Some(Registering))),
        // From itself: another attempt in the same boot.
        (Installing, _) => step(matches!(
            state,
            None | Some(Registering | Waiting | Installing)
        )),
        (BootingNewKernel, _) => step(matches!(state, None | Some(Installing))),
        (PhonedHome, Some(MachineReclaim)) => StillThere,
        // Callers are authenticated by the allocation's certificate, so that a planned reboot
        // may end here without the fear of a buffered frame.
        (PhonedHome, _) => step(matches!(
            state,
            None | Some(BootingNewKernel | PlannedReboot)
        )),
    }
}

/// The log after an event. `sent` is the sender's time, `now` the proposer's.
pub(crate) fn advance(
    log: &EventLog,
    kind: EventKind,
    message: &str,
    sent: Timestamp,
    now: Timestamp,
) -> EventLog {
    let mut next = log.clone();
    let last = log
        .events
        .last()
        .map_or(Timestamp::ZERO, |event| event.time);
    // A sender's clock may be wrong: never in the future, never before what is stored.
    let time = sent.max(last).min(now);
    let message: String = message.chars().take(EVENT_MESSAGE_MAX).collect();
    let is_sign_of_life = !matches!(kind, PlannedReboot | MachineReclaim);
    if is_sign_of_life {
        next.last_event_time = log.last_event_time.max(now);
        next.liveliness = Liveliness::Alive;
    }
    match meaning(log.state, kind) {
        Meaning::Heartbeat => {}
        Meaning::StillThere => {
            if now.since_ms(last) > RECLAIM_GRACE_MS {
                next.failed_reclaim = true;
            }
        }
        Meaning::Step => step(
            &mut next,
            Event {
                time,
                kind,
                message,
            },
        ),
        Meaning::Unexpected => unexpected(
            &mut next,
            Event {
                time,
                kind,
                message,
            },
        ),
    }
    next
}

/// The log after an order that was not carried out: the reason is told, the machine is where it
/// was.
pub(crate) fn failed(log: &EventLog, kind: EventKind, message: &str, now: Timestamp) -> EventLog {
    let mut next = log.clone();
    let event = Event {
        time: now,
        kind,
        message: message.chars().take(EVENT_MESSAGE_MAX).collect(),
    };
    next.last_error_event = Some(event.clone());
    append(&mut next, event);
    next
}

fn step(log: &mut EventLog, event: Event) {
    match event.kind {
        Crashed => {
            log.crash_loop = true;
            log.last_error_event = Some(event.clone());
        }
        PxeBooting | Preparing => log.failed_reclaim = false,
        // A machine that got as far as this by itself is out of the loop.
        Waiting | PhonedHome | PlannedReboot | MachineReclaim => log.crash_loop = false,
        _ => {}
    }
    push(log, event);
}

fn unexpected(log: &mut EventLog, mut event: Event) {
    let state = log.state.map_or("Initial", EventKind::as_str);
    event.message = format!("[unexpectedly received in {state}] {}", event.message);
    event.message.truncate(event.message.trim_end().len());
    log.last_error_event = Some(event.clone());
    if matches!(event.kind, PxeBooting | Preparing) {
        log.crash_loop = true;
        log.failed_reclaim = false;
    }
    // These two say nothing about where the machine is.
    if !matches!(event.kind, Alive | PhonedHome) {
        push(log, event);
    }
}

fn push(log: &mut EventLog, event: Event) {
    log.state = Some(event.kind);
    append(log, event);
}

fn append(log: &mut EventLog, event: Event) {
    log.events.push(event);
    log.recorded = log.recorded.saturating_add(1);
    let surplus = log.events.len().saturating_sub(EVENTS_MAX);
    log.events.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use proto_types::MachineId;

    use super::*;

    fn run(events: &[EventKind]) -> EventLog {
        let mut log = EventLog::new(MachineId::new(uuid::Uuid::nil()));
        for (at, kind) in events.iter().enumerate() {
            let now = Timestamp::from_ms(1000 * (at as u64 + 1));
            log = advance(&log, *kind, "", now, now);
        }
        log
    }

    #[test]
    fn the_happy_path_has_no_errors() {
        let log = run(&[
            PxeBooting,
            PxeBooting,
            Preparing,
            Registering,
            Alive,
            Waiting,
            Alive,
            Installing,
            BootingNewKernel,
            PhonedHome,
            PhonedHome,
            PlannedReboot,
            PhonedHome,
            MachineReclaim,
            PxeBooting,
            Preparing,
            Registering,
            Waiting,
        ]);
        assert_eq!(log.last_error_event, None);
        assert!(!log.crash_loop && !log.failed_reclaim);
        assert_eq!(log.state, Some(Waiting));
        assert!(log.events.iter().all(|event| event.kind != Alive));
    }

    #[test]
    fn odd_sequences() {
        // events, state, crash loop, error
        let cases: &[(&[EventKind], EventKind, bool, bool)] = &[
            (&[PxeBooting, Preparing, PxeBooting], PxeBooting, true, true),
            (&[PxeBooting, Preparing, Crashed], Crashed, true, true),
            (
                &[PxeBooting, Preparing, Crashed, PxeBooting],
                PxeBooting,
                true,
                true,
            ),
            (
                &[
                    PxeBooting,
                    Preparing,
                    PxeBooting,
                    Preparing,
                    Registering,
                    Waiting,
                ],
                Waiting,
                false,
                true,
            ),
            (
                &[PxeBooting, Preparing, Registering, Installing, PxeBooting],
                PxeBooting,
                true,
                true,
            ),
            (
                &[PxeBooting, Preparing, Registering, Installing, Installing],
                Installing,
                false,
                false,
            ),
            (
                &[PxeBooting, Preparing, Registering, Waiting, PhonedHome],
                Waiting,
                false,
                true,
            ),
            (&[PhonedHome, Alive], PhonedHome, false, true),
            (&[PxeBooting, Waiting], Waiting, false, true),
            (
                &[PxeBooting, Preparing, PxeBooting, PlannedReboot],
                PlannedReboot,
                false,
                true,
            ),
        ];
        for (events, state, crash_loop, error) in cases {
            let log = run(events);
            assert_eq!(log.state, Some(*state), "{events:?}");
            assert_eq!(log.crash_loop, *crash_loop, "{events:?}");
            assert_eq!(log.last_error_event.is_some(), *error, "{events:?}");
        }
    }

    #[test]
    fn a_freed_machine_that_phones_home_for_long_is_not_reclaimed() {
        let log = run(&[BootingNewKernel, PhonedHome, MachineReclaim]);
        let soon = Timestamp::from_ms(3000 + RECLAIM_GRACE_MS);
        let late = soon.plus_ms(1);
        assert!(!advance(&log, PhonedHome, "", soon, soon).failed_reclaim);
        let failed = advance(&log, PhonedHome, "", late, late);
        assert!(failed.failed_reclaim);
        assert_eq!(failed.state, Some(MachineReclaim));
        assert!(!advance(&failed, PxeBooting, "", late, late).failed_reclaim);
    }

    #[test]
    fn the_senders_clock_is_not_believed() {
        let now = Timestamp::from_ms(10_000);
        let log = run(&[PxeBooting]);
        let ahead = advance(&log, Preparing, "", now.plus_ms(1_000_000), now);
        assert_eq!(ahead.events.last().unwrap().time, now);
        let behind = advance(&log, Preparing, "", Timestamp::ZERO, now);
        assert_eq!(behind.events.last().unwrap().time, Timestamp::from_ms(1000));
        assert_eq!(behind.last_event_time, now);
    }

    #[test]
    fn only_a_hundred_are_kept() {
        let log = run(&[PlannedReboot; 130]);
        assert_eq!(log.events.len(), EVENTS_MAX);
    }
}
