//! The event state machine: the effect of an event on a machine's event log.
//!
//! The states are the events themselves. A legal event moves the state on; an illegal one is stored
//! as the last error and moves it on as well, so that one lost event does not wedge a machine for
//! ever.

use proto_types::Timestamp;

use crate::machine::entity::EventKind::{
    self, Alive, BootingNewKernel, Crashed, Installing, MachineReclaim, PhonedHome, PlannedReboot,
    Preparing, PxeBooting, Registering, Waiting,
};
use crate::machine::entity::{EVENT_MESSAGE_MAX, EVENTS_MAX, Event, EventLog, Liveliness};

/// Grace period in which a freed machine may still phone home, milliseconds. A later call sets
/// `failed_reclaim`, and the machine is not on offer.
pub(crate) const RECLAIM_GRACE_MS: u64 = 5 * 60_000;

/// Meaning of an event in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// It is stored and moves the state on.
    Step,
    /// It is a sign of life only.
    Heartbeat,
    /// The tenant's system still runs although the machine was freed.
    StillThere,
    /// It is out of order.
    Unexpected,
}

/// The meaning of an event after the last one.
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
        // Hammer's heartbeats may go on after a reboot or release was ordered, until the power is
        // cut. After a phone home hammer cannot be there.
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
        // After itself it is another attempt in the same boot.
        (Installing, _) => step(matches!(
            state,
            None | Some(Registering | Waiting | Installing)
        )),
        (BootingNewKernel, _) => step(matches!(state, None | Some(Installing))),
        (PhonedHome, Some(MachineReclaim)) => StillThere,
        // The caller proves itself by the allocation's certificate: after a planned reboot a phone
        // home is the new boot, and no leftover of another tenant.
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
    // The time of the receiver counts for liveliness: a sender's clock that is behind would make a
    // living machine look dead.
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

/// The log after an order that was not carried out. The failure is stored and the state stays:
/// nothing happened to the machine.
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
        // A machine that got as far as this is out of the loop; an ordered reboot begins a new
        // count.
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
    // These two may be late and do not tell where the machine is: moved on by them, the state would
    // make the machine's real next event unexpected.
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
    // Counts dropped events too: readers find the events of a tenancy by it.
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
