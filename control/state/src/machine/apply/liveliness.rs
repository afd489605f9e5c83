//! Liveliness of machines, judged by the time since their last sign of life.

use proto_types::{PartitionId, Timestamp};

use crate::cluster::command::Tick;
use crate::cluster::read::{reconciled_at, restored};
use crate::machine::apply::lifecycle;
use crate::machine::entity::{EventLog, Liveliness, Machine};
use crate::tables::{Tables, Tx};

/// Longest silence of a living machine, milliseconds. Beyond it a free machine counts as dead, and
/// a tenant's as unknown.
pub const DEAD_AFTER_MS: u64 = 5 * 60_000;

/// `true` if the agents of a partition are connected, so that silence there means something. A
/// machine without a partition counts as observed.
pub(crate) fn is_observed(partition: Option<&PartitionId>, op: &Tick) -> bool {
    partition.is_none_or(|partition| !op.unobserved.contains(partition))
}

/// Writes the changed liveliness of all machines.
pub(crate) fn liveliness(tx: &mut Tx<'_>, op: &Tick) {
    let changed: Vec<EventLog> = judged(tx.tables(), op, tx.now).collect();
    for log in changed {
        let machine = tx.get::<Machine>(&log.machine);
        let is_back = log.liveliness == Liveliness::Alive;
        if let Some(machine) = machine.filter(|_| is_back).cloned() {
            let mut machine = Machine::clone(&machine);
            lifecycle::came_back(&mut machine);
            tx.save(machine);
        }
        tx.save(log);
    }
}

/// Event logs with the liveliness that the machines have now, only where it changed. Heartbeats
/// live in the leader's memory: an unchanged machine costs no write.
pub(crate) fn judged(tables: &Tables, op: &Tick, now: Timestamp) -> impl Iterator<Item = EventLog> {
    let made_at = restored(tables).map(|restored| restored.made_at);
    let is_held = made_at.is_some();
    // A new leader has heard nobody yet, and so had nobody before the reconciliation of a restored
    // state: silence counts from there.
    let since = op.listening_since.max(reconciled_at(tables));
    tables
        .all::<EventLog>()
        .filter(|log| log.liveliness != Liveliness::Unspecified)
        .filter_map(move |log| {
            let machine = tables.get::<Machine>(&log.machine)?;
            let heard = op
                .heard
                .get(&log.machine)
                .copied()
                .unwrap_or_default()
                // A heartbeat from a clock that is ahead must not keep a dead machine alive.
                .min(now);
            let last = log.last_event_time.max(heard);
            let judged = if now.since_ms(last) < DEAD_AFTER_MS {
                Liveliness::Alive
            } else if is_held || now.since_ms(last.max(since)) < DEAD_AFTER_MS {
                // Silence before this leader proves neither death nor life: the last judgement
                // stays.
                log.liveliness
            } else if !is_observed(machine.partition.as_ref(), op) {
                log.liveliness
            } else if machine.allocation.is_some() {
                Liveliness::Unknown
            } else {
                Liveliness::Dead
            };
            // While a restored state waits for its operator, the first sign of life is written: the
            // operator compares by it.
            let is_first = made_at.is_some_and(|at| log.last_event_time <= at && last > at);
            // Until the reconciliation only credentials that the backup knows are accepted, so that
            // a heartbeat proves the machine to be what the backup knows.
            let is_confirmed = made_at.is_some_and(|at| heard > at);
            let confirmed_at = log.confirmed_at.or_else(|| is_confirmed.then_some(heard));
            let is_news = is_first || confirmed_at != log.confirmed_at;
            (judged != log.liveliness || is_news).then(|| EventLog {
                liveliness: judged,
                last_event_time: last,
                confirmed_at,
                ..EventLog::clone(log)
            })
        })
}
