//! What time alone changes: signs of life, deadlines, and records that have had their day.

use std::sync::Arc;

use proto_errors::Error;
use proto_types::{MachineId, OrderId, PartitionId, Timestamp};

use super::{boots, events, handover, lifecycle, machine, orders, reclaim};
use crate::audit::apply::retention;
use crate::cluster::apply::clock::{self, TickTime};
use crate::cluster::command::Tick;
use crate::cluster::entity::{COMPONENT_LIFE_MS, Component};
use crate::cluster::read::{reconciled_at, restored};
use crate::entities::{
    Availability, BmcOrder, EventLog, HoldCause, Idempotency, Liveliness, Machine, OrderPurpose,
    OrderState, Phase, Segment,
};
use crate::identity::apply::{ca, identity};
use crate::identity::entity::{BootTicket, Certificate, Identity, JoinTicket, Token};
use crate::levels::{CUT_OFF_LEVEL, feature_level};
use crate::life::is_left_alone;
use crate::network::entity::CoolingNumber;
use crate::reply::Reply;
use crate::tables::{Entity, Record, Tables, Tx};
use crate::tenancy::entity::Invite;

/// A machine that is silent for so long is dead, or unknown when a tenant has it, milliseconds.
pub const DEAD_AFTER_MS: u64 = 5 * 60_000;
/// A machine that shall come up for a tenant or after a reclaim is rebooted after so much
/// silence, milliseconds.
pub(crate) const NUDGE_AFTER_MS: u64 = 15 * 60_000;
/// A machine that nobody has is rebooted after so much silence, milliseconds.
pub(crate) const RESURRECT_AFTER_MS: u64 = 60 * 60_000;
/// Hammer is told to reboot at the latest so long after an installation, milliseconds.
const BOOT_ORDER_MS: u64 = 30_000;
/// An installed system that does not phone home for so long is worth a remark, milliseconds.
const FIRST_PHONE_HOME_MS: u64 = 30 * 60_000;
/// A machine that was only seen is forgotten so long after it became known, milliseconds.
const STRANGER_LIFE_MS: u64 = 3_600_000;
/// Ended tokens and tickets are kept for people to look at, milliseconds: a week.
const KEEP_MS: u64 = 7 * 24 * 3_600_000;
/// Ended certificates are kept for a little, so that a slow clock finds them, milliseconds.
const KEEP_CERTIFICATES_MS: u64 = 10 * 60_000;

type Result = std::result::Result<Reply, Error>;
type Step = std::result::Result<(), Error>;

pub(crate) fn tick(tx: &mut Tx<'_>, op: &Tick) -> Result {
    match clock::advance(tx, op) {
        TickTime::Believed(now) => tx.now = now,
        // A wrong clock would end every token, ticket and deadline at once.
        TickTime::Held => return Ok(Reply::None),
    }
    liveliness(tx, op);
    expire_orders(tx, op)?;
    deadlines(tx, op)?;
    forget_strangers(tx);
    identity::finish_rotations(tx);
    ca::advance_rotation(tx);
    purge(tx);
    retention::retain(tx);
    Ok(Reply::None)
}

/// Whether a tick can change anything now. It may say yes although nothing will: a look without
/// a copy of all tables, which nearly always says no.
pub fn tick_may_change(tables: &Tables, op: &Tick, now: Timestamp) -> bool {
    if clock::is_due(tables, op, now) {
        return true;
    }
    let TickTime::Believed(now) = clock::tick_time(tables, now) else {
        return false;
    };
    judged(tables, op, now).next().is_some()
        || late(tables, op, now).next().is_some()
        || waiting(tables, op, now).any(|machine| may_be_due(tables, op, machine, now))
        || old_strangers(tables, now).next().is_some()
        || !identity::of_replaced_keys(tables, now).is_empty()
        || ca::is_rotating(tables)
        || !outdated(tables, now).is_empty()
        || retention::is_due(tables, now)
}

/// As [`deadline`] decides, or more often.
fn may_be_due(tables: &Tables, op: &Tick, machine: &Machine, now: Timestamp) -> bool {
    let waited = now.since_ms(machine.since);
    let silence = || now.since_ms(silent_since(tables, op, machine));
    match machine.phase {
        Phase::BootOrder => waited >= BOOT_ORDER_MS,
        Phase::Rebooting => {
            (waited >= FIRST_PHONE_HOME_MS && machine.reason.is_empty())
                || handover::is_awaited(machine, waited)
                || (has_left_hammer(machine) && boots::is_open(tables, machine.id))
        }
        Phase::ReclaimPorts => waited >= reclaim::PORTS_MS,
        Phase::Installing | Phase::ReclaimRegister => silence() >= NUDGE_AFTER_MS,
        Phase::Wiping | Phase::Waiting => silence() >= RESURRECT_AFTER_MS,
        _ => false,
    }
}

/// The port is the tenant's, so that hammer is gone: what it was given ends.
fn has_left_hammer(machine: &Machine) -> bool {
    machine.phase == Phase::Rebooting && machine.segment == Segment::Tenant
}

fn is_observed(partition: Option<&PartitionId>, op: &Tick) -> bool {
    partition.is_none_or(|partition| !op.unobserved.contains(partition))
}

fn liveliness(tx: &mut Tx<'_>, op: &Tick) {
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
fn judged(tables: &Tables, op: &Tick, now: Timestamp) -> impl Iterator<Item = EventLog> {
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

fn expire_orders(tx: &mut Tx<'_>, op: &Tick) -> Step {
    let late: Vec<_> = late(tx.tables(), op, tx.now).collect();
    for id in late {
        // An earlier one may have cancelled it.
        let order = tx
            .get::<BmcOrder>(&id)
            .filter(|order| order.state == OrderState::Open);
        let Some(order) = order.map(|order| BmcOrder::clone(order)) else {
            continue;
        };
        orders::expire(tx, &order)?;
    }
    Ok(())
}

/// Open orders whose time is over. What the life cycle ordered of a partition that is cut off
/// waits: that nobody answers there says nothing on the BMC.
fn late<'a>(
    tables: &'a Tables,
    op: &'a Tick,
    now: Timestamp,
) -> impl Iterator<Item = OrderId> + 'a {
    let is_held = restored(tables).is_some();
    let is_judged = move |order: &BmcOrder| {
        order.purpose != OrderPurpose::Life
            || (!is_held
                && (is_observed(Some(&order.partition), op)
                    || feature_level(tables) < CUT_OFF_LEVEL))
    };
    let open = tables.index().open_orders.values().flatten();
    open.filter_map(|id| tables.get::<BmcOrder>(id))
        .filter(move |order| order.state == OrderState::Open && now >= order.deadline)
        .filter(move |order| is_judged(order) && !is_spared(tables, order))
        .map(|order| order.id)
}

/// `true` if the life cycle ordered it of a machine that is locked now: it waits for the operator.
fn is_spared(tables: &Tables, order: &BmcOrder) -> bool {
    let machine = tables.get::<Machine>(&order.machine);
    let is_locked = machine.is_some_and(|machine| is_left_alone(tables, machine));
    is_locked && order.purpose == OrderPurpose::Life
}

/// Machines in a phase that has an end, and may have come to it.
fn waiting<'a>(
    tables: &'a Tables,
    op: &'a Tick,
    now: Timestamp,
) -> impl Iterator<Item = &'a Machine> {
    let is_held = restored(tables).is_some();
    tables
        .all::<Machine>()
        .map(AsRef::as_ref)
        .filter(move |machine| {
            !is_held
                && !matches!(machine.phase, Phase::New | Phase::Running | Phase::Held(_))
                && machine.since < now
                && !is_left_alone(tables, machine)
                && is_observed(machine.partition.as_ref(), op)
        })
}

fn deadlines(tx: &mut Tx<'_>, op: &Tick) -> Step {
    let due: Vec<MachineId> = waiting(tx.tables(), op, tx.now)
        .map(|machine| machine.id)
        .collect();
    for id in due {
        deadline(tx, op, id)?;
    }
    Ok(())
}

fn deadline(tx: &mut Tx<'_>, op: &Tick, id: MachineId) -> Step {
    let mut machine: Machine = tx.require(&id)?;
    if has_left_hammer(&machine) {
        boots::end(tx, id, events::INSTALLED);
    }
    // A partition that was cut off, or a new leader, has its time from the start.
    let waited = tx.now.since_ms(machine.since);
    match machine.phase {
        Phase::BootOrder if waited >= BOOT_ORDER_MS => {
            let reason = "the BMC did not confirm the boot device in time";
            machine.enter(Phase::Rebooting, tx.now, reason);
            tx.save(machine);
        }
        Phase::Rebooting if waited >= FIRST_PHONE_HOME_MS && machine.reason.is_empty() => {
            machine.reason = "the installed system has not phoned home".into();
            tx.save(machine);
        }
        Phase::Rebooting if handover::is_awaited(&machine, waited) => handover::chase(tx, machine)?,
        Phase::ReclaimPorts if waited >= reclaim::PORTS_HOLD_MS => {
            reclaim::hold_for_ports(tx, machine);
        }
        Phase::ReclaimPorts if waited >= reclaim::PORTS_MS => {
            machine.reason = reclaim::unmoved_reason(tx.tables(), &machine);
            tx.save(machine);
        }
        Phase::Installing | Phase::ReclaimRegister => {
            nudge_after(tx, op, machine, NUDGE_AFTER_MS)?;
        }
        Phase::Wiping | Phase::Waiting => nudge_after(tx, op, machine, RESURRECT_AFTER_MS)?,
        _ => {}
    }
    Ok(())
}

fn silent_since(tables: &Tables, op: &Tick, machine: &Machine) -> Timestamp {
    let log = tables.get::<EventLog>(&machine.id);
    let planned = log
        .and_then(|log| log.events.last())
        .map_or(Timestamp::ZERO, |e| e.time);
    let heard = op.heard.get(&machine.id).copied().unwrap_or_default();
    let last = log.map_or(Timestamp::ZERO, |log| log.last_event_time);
    last.max(heard)
        .max(planned)
        .max(machine.since)
        .max(op.listening_since)
        .max(reconciled_at(tables))
}

/// Reboots a machine that says nothing; holds it when that does not help.
fn nudge_after(tx: &mut Tx<'_>, op: &Tick, mut machine: Machine, after_ms: u64) -> Step {
    let silence = tx.now.since_ms(silent_since(tx.tables(), op, &machine));
    let is_locked = machine.condition.state == Availability::Locked;
    if silence < after_ms || is_locked || machine.partition.is_none() {
        return Ok(());
    }
    if machine.step_attempts < reclaim::STEP_ATTEMPTS_MAX {
        let id = machine.id;
        machine.step_attempts += 1;
        machine.reason = format!("silent for {} min, rebooted by its BMC", silence / 60_000);
        tx.save(machine);
        return reclaim::nudge(tx, id, "silent for too long");
    }
    let reason = format!(
        "did not come up, rebooted {} times",
        reclaim::STEP_ATTEMPTS_MAX
    );
    match machine.phase {
        Phase::Installing => machine.enter(Phase::Held(HoldCause::Install), tx.now, reason),
        Phase::ReclaimRegister => machine.enter(Phase::Held(HoldCause::Bmc), tx.now, reason),
        // Dead and not on offer: its liveliness says so.
        _ => machine.reason = reason,
    }
    tx.save(machine);
    Ok(())
}

/// Machines that were seen, and did not register in their time.
fn old_strangers(tables: &Tables, now: Timestamp) -> impl Iterator<Item = MachineId> {
    let all = tables.index().strangers.values();
    let is_held = restored(tables).is_some();
    let old =
        move |known: &&(Timestamp, MachineId)| !is_held && now >= known.0.plus_ms(STRANGER_LIFE_MS);
    all.flat_map(move |known| known.iter().take_while(old))
        .map(|(_, id)| *id)
}

fn forget_strangers(tx: &mut Tx<'_>) {
    let old: Vec<_> = old_strangers(tx.tables(), tx.now).collect();
    for id in old {
        machine::forget(tx, id);
    }
}

fn purge(tx: &mut Tx<'_>) {
    for record in outdated(tx.tables(), tx.now) {
        match record {
            Record::Token(it) => drop(tx.delete::<Token>(&it.id)),
            Record::Component(it) => drop(tx.delete::<Component>(&it.id)),
            Record::JoinTicket(it) => drop(tx.delete::<JoinTicket>(&it.id)),
            Record::BootTicket(it) => drop(tx.delete::<BootTicket>(&it.id)),
            Record::Certificate(it) => drop(tx.delete::<Certificate>(&it.serial)),
            Record::Identity(it) => drop(tx.delete::<Identity>(&it.id)),
            Record::Idempotency(it) => drop(tx.delete::<Idempotency>(&it.key())),
            Record::Invite(it) => drop(tx.delete::<Invite>(&it.id)),
            Record::CoolingNumber(it) => drop(tx.delete::<CoolingNumber>(&it.number)),
            _ => {}
        }
    }
}

/// Records that have had their day.
fn outdated(tables: &Tables, now: Timestamp) -> Vec<Record> {
    let mut all = Vec::new();
    let over = |end: Timestamp, keep_ms: u64| now >= end.plus_ms(keep_ms);
    gather(tables, &mut all, |it: &Token| over(it.expires, KEEP_MS));
    gather(tables, &mut all, |it: &Component| {
        over(it.reported_at, COMPONENT_LIFE_MS)
    });
    gather(tables, &mut all, |it: &JoinTicket| {
        // A redeemed ticket is the record that lets its agent come back after a long silence.
        let is_of_use = it.redeemed_at.is_some() && it.revoked_at.is_none();
        over(it.expires_at, KEEP_MS) && !is_of_use
    });
    gather(tables, &mut all, |it: &BootTicket| over(it.expires_at, 0));
    gather(tables, &mut all, |it: &Certificate| {
        over(it.not_after, KEEP_CERTIFICATES_MS)
    });
    gather(tables, &mut all, |it: &Identity| {
        over(it.not_after, it.keep_ms())
    });
    gather(tables, &mut all, |it: &Idempotency| over(it.expires_at, 0));
    gather(tables, &mut all, |it: &Invite| over(it.expires_at, 0));
    gather(tables, &mut all, |it: &CoolingNumber| over(it.until, 0));
    all
}

/// Adds the objects of a kind that are as asked.
fn gather<T: Entity>(tables: &Tables, all: &mut Vec<Record>, is_asked: impl Fn(&T) -> bool) {
    let found = tables.all::<T>().filter(|it| is_asked(it));
    all.extend(found.map(|it| T::record(Arc::clone(it))));
}
