//! Liveliness of machines, by the time of their last sign of life.

use proto_types::{PartitionId, Timestamp};

use crate::cluster::command::Tick;
use crate::cluster::read::{reconciled_at, restored};
use crate::machine::apply::lifecycle;
use crate::machine::entity::{EventLog, Liveliness, Machine};
use crate::tables::{Tables, Tx};

/// A machine that is silent for so long is dead, or unknown when a tenant has it, milliseconds.
pub const DEAD_AFTER_MS: u64 = 5 * 60_000;

pub(crate) fn is_observed(partition: Option<&PartitionId>, op: &Tick) -> bool {
    partition.is_none_or(|partition| !op.unobserved.contains(partition))
}

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

/// Logs of machines that are not what they were taken for any more.
pub(crate) fn judged(tables: &Tables, op: &Tick, now: Timestamp) -> impl Iterator<Item = EventLog> {
    let made_at = restored(tables).map(|restored| restored.made_at);
    let is_held = made_at.is_some();
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
                .min(now);
            let last = log.last_event_time.max(heard);
            let judged = if now.since_ms(last) < DEAD_AFTER_MS {
                Liveliness::Alive
            } else if is_held || now.since_ms(last.max(since)) < DEAD_AFTER_MS {
                // Silence of before this leader proves nothing, but neither does it prove life.
                log.liveliness
            } else if !is_observed(machine.partition.as_ref(), op) {
                log.liveliness
            } else if machine.allocation.is_some() {
                Liveliness::Unknown
            } else {
                Liveliness::Dead
            };
            // The operator who reconciles a restored state wants to know who was heard at all.
            let is_first = made_at.is_some_and(|at| log.last_event_time <= at && last > at);
            // Only credentials that the backup knows are heard while the state is held.
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
