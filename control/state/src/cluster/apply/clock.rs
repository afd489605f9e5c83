//! The cluster's time: how ticks advance it, and how an operator sets it.

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::cluster::command::{AcceptTime, Tick};
use crate::cluster::entity::{ClusterClock, HeldJump};
use crate::reply::{ApplyResult, Reply};
use crate::tables::{Tables, Tx};

/// Largest difference between the operator's clock and the node's at which the node's time is
/// accepted, milliseconds. Beyond it one of the two is wrong, and the command is refused.
const ACCEPT_WITHIN_MS: u64 = 60_000;

/// The judgement of a tick's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickTime {
    /// The time to judge by, never before the cluster's time.
    Believed(Timestamp),
    /// The time is too far ahead: no deadline may be judged by it.
    Held,
}

fn clock(tables: &Tables) -> Option<&ClusterClock> {
    tables
        .get::<ClusterClock>(&ClusterClock::ONE.to_owned())
        .map(AsRef::as_ref)
}

/// Decides how a tick at `now` is judged.
pub(crate) fn tick_time(tables: &Tables, now: Timestamp) -> TickTime {
    match clock(tables) {
        Some(clock) if clock.is_jump(now) => TickTime::Held,
        Some(clock) => TickTime::Believed(now.max(clock.time)),
        None => TickTime::Believed(now),
    }
}

/// `true` if a tick at `now` has to be written for the sake of the clock alone.
pub(crate) fn is_due(tables: &Tables, op: &Tick, now: Timestamp) -> bool {
    match clock(tables) {
        None => true,
        Some(clock) if clock.is_jump(now) => !is_held(clock, op, now),
        Some(clock) => clock.held.is_some() || now.since_ms(clock.time) >= ClusterClock::STEP_MS,
    }
}

/// `true` if this jump is on record: the same node, whose clock went on since.
fn is_held(clock: &ClusterClock, op: &Tick, now: Timestamp) -> bool {
    let goes_on = |held: &HeldJump| {
        held.node == op.node
            && held.claimed <= now
            && now.since_ms(held.claimed) <= ClusterClock::JUMP_MAX_MS
    };
    clock.held.as_ref().is_some_and(goes_on)
}

/// Advances the cluster's time by a tick, or records that it is held.
pub(crate) fn advance(tx: &mut Tx<'_>, op: &Tick) -> TickTime {
    let time = tick_time(tx.tables(), tx.now);
    if !is_due(tx.tables(), op, tx.now) {
        return time;
    }
    let known = clock(tx.tables()).cloned();
    let mut next = known.unwrap_or_else(|| ClusterClock::at(tx.now));
    match time {
        TickTime::Believed(now) => next = next.set_to(now),
        TickTime::Held => {
            next.held = Some(HeldJump {
                node: op.node,
                claimed: tx.now,
            });
        }
    }
    tx.save(next);
    time
}

/// Sets the cluster's time to the proposer's, forward or back, when the operator's clock agrees.
pub(crate) fn accept(tx: &mut Tx<'_>, op: &AcceptTime) -> ApplyResult {
    let (ahead_ms, behind_ms) = (tx.now.since_ms(op.time), op.time.since_ms(tx.now));
    if ahead_ms.max(behind_ms) > ACCEPT_WITHIN_MS {
        let (apart_ms, side) = match ahead_ms {
            0 => (behind_ms, "behind"),
            _ => (ahead_ms, "ahead of"),
        };
        let what = format!(
            "the clock of this control node is {} s {side} yours",
            apart_ms / 1000
        );
        return Err(Error::new(ErrorCode::ClocksDiffer, what));
    }
    let known = clock(tx.tables()).cloned();
    let next = known.unwrap_or_else(|| ClusterClock::at(tx.now));
    Ok(Reply::ClusterClock(tx.save(next.set_to(tx.now))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn world(time: u64, held: Option<(u64, u64)>) -> Tables {
        let mut tables = Tables::new();
        let held = held.map(|(node, claimed)| HeldJump {
            node,
            claimed: Timestamp::from_ms(claimed),
        });
        let clock = ClusterClock {
            held,
            ..ClusterClock::at(Timestamp::from_ms(time))
        };
        tables.put_raw(std::sync::Arc::new(clock), 1);
        tables
    }

    #[test]
    fn a_jump_is_held_and_written_once() {
        let start = 10 * HOUR_MS;
        let wrong = start + 48 * HOUR_MS;
        for (what, held, now, time, due) in [
            ("at rest", None, start + 2_000, Some(start + 2_000), false),
            (
                "a step",
                None,
                start + HOUR_MS / 4,
                Some(start + HOUR_MS / 4),
                true,
            ),
            (
                "at the bound",
                None,
                start + HOUR_MS,
                Some(start + HOUR_MS),
                true,
            ),
            ("behind", None, start - HOUR_MS, Some(start), false),
            ("beyond", None, start + HOUR_MS + 1, None, true),
            ("held", Some((1, wrong)), wrong + 2_000, None, false),
            (
                "held of another node",
                Some((2, wrong)),
                wrong + 2_000,
                None,
                true,
            ),
            (
                "held, and back",
                Some((1, wrong)),
                start + 2_000,
                Some(start + 2_000),
                true,
            ),
            (
                "held, and another time",
                Some((1, wrong)),
                wrong + 3 * HOUR_MS,
                None,
                true,
            ),
        ] {
            let tables = world(start, held);
            let now = Timestamp::from_ms(now);
            let wanted = time.map_or(TickTime::Held, |ms| {
                TickTime::Believed(Timestamp::from_ms(ms))
            });
            assert_eq!(tick_time(&tables, now), wanted, "{what}");
            let op = Tick {
                node: 1,
                ..Tick::default()
            };
            assert_eq!(is_due(&tables, &op, now), due, "{what}");
        }
    }
}
