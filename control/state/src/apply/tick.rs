//! What time alone changes: signs of life, deadlines, and records that have had their day.

use proto_errors::Error;
use proto_types::{MachineId, PartitionId, Timestamp};

use super::{identity, orders, reclaim};
use crate::command::Tick;
use crate::entities::{
    Availability, BmcOrder, BootTicket, COMPONENT_LIFE_MS, Certificate, Component, EventLog,
    HoldCause, Idempotency, Identity, Invite, JoinTicket, Liveliness, Machine, OrderState, Phase,
    Segment, Token,
};
use crate::reply::Reply;
use crate::tables::Tx;

/// A machine that is silent for so long is dead, or unknown when a tenant has it, milliseconds.
pub const DEAD_AFTER_MS: u64 = 5 * 60_000;
/// A machine that shall come up for a tenant or after a reclaim is rebooted after so much
/// silence, milliseconds.
pub(super) const NUDGE_AFTER_MS: u64 = 15 * 60_000;
/// A machine that nobody has is rebooted after so much silence, milliseconds.
pub(super) const RESURRECT_AFTER_MS: u64 = 60 * 60_000;
/// Hammer is told to reboot at the latest so long after an installation, milliseconds.
const BOOT_ORDER_MS: u64 = 30_000;
/// The port is the tenant's at the latest so long after the reboot, milliseconds.
const HANDOVER_MS: u64 = 60_000;
/// An installed system that does not phone home for so long is worth a remark, milliseconds.
const FIRST_PHONE_HOME_MS: u64 = 30 * 60_000;
/// Ended tokens and tickets are kept for people to look at, milliseconds: a week.
const KEEP_MS: u64 = 7 * 24 * 3_600_000;
/// Ended certificates are kept for a little, so that a slow clock finds them, milliseconds.
const KEEP_CERTIFICATES_MS: u64 = 10 * 60_000;

type Result = std::result::Result<Reply, Error>;
type Step = std::result::Result<(), Error>;

pub(super) fn tick(tx: &mut Tx<'_>, op: &Tick) -> Result {
    liveliness(tx, op);
    expire_orders(tx)?;
    deadlines(tx, op)?;
    identity::finish_rotations(tx);
    purge(tx);
    Ok(Reply::None)
}

fn is_observed(partition: Option<&PartitionId>, op: &Tick) -> bool {
    partition.is_none_or(|partition| !op.unobserved.contains(partition))
}

fn liveliness(tx: &mut Tx<'_>, op: &Tick) {
    let now = tx.now;
    let changed: Vec<EventLog> = tx
        .tables()
        .all::<EventLog>()
        .filter(|log| log.liveliness != Liveliness::Unspecified)
        .filter_map(|log| {
            let machine = tx.get::<Machine>(&log.machine)?;
            let heard = op
                .heard
                .get(&log.machine)
                .copied()
                .unwrap_or_default()
                .min(now);
            let last = log.last_event_time.max(heard);
            let judged = if now.since_ms(last.max(op.listening_since)) < DEAD_AFTER_MS {
                // Silence of before this leader proves nothing, but neither does it prove life.
                if now.since_ms(last) < DEAD_AFTER_MS {
                    Liveliness::Alive
                } else {
                    log.liveliness
                }
            } else if !is_observed(machine.partition.as_ref(), op) {
                log.liveliness
            } else if machine.allocation.is_some() {
                Liveliness::Unknown
            } else {
                Liveliness::Dead
            };
            (judged != log.liveliness).then(|| EventLog {
                liveliness: judged,
                last_event_time: last,
                ..EventLog::clone(log)
            })
        })
        .collect();
    for log in changed {
        tx.save(log);
    }
}

fn expire_orders(tx: &mut Tx<'_>) -> Step {
    let now = tx.now;
    let open = tx.tables().index().open_orders.values().flatten();
    let late: Vec<_> = open
        .filter_map(|id| tx.get::<BmcOrder>(id))
        .filter(|order| order.state == OrderState::Open && now >= order.deadline)
        .map(|order| order.id)
        .collect();
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

fn deadlines(tx: &mut Tx<'_>, op: &Tick) -> Step {
    let due: Vec<MachineId> = tx
        .tables()
        .all::<Machine>()
        .filter(|machine| {
            !matches!(machine.phase, Phase::New | Phase::Running | Phase::Held(_))
                && machine.since < tx.now
                && is_observed(machine.partition.as_ref(), op)
        })
        .map(|machine| machine.id)
        .collect();
    for id in due {
        deadline(tx, op, id)?;
    }
    Ok(())
}

fn deadline(tx: &mut Tx<'_>, op: &Tick, id: MachineId) -> Step {
    let mut machine: Machine = tx.require(&id)?;
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
        Phase::Rebooting if waited >= HANDOVER_MS && machine.segment != Segment::Tenant => {
            machine.segment = Segment::Tenant;
            tx.save(machine);
        }
        Phase::ReclaimPorts if waited >= reclaim::PORTS_MS => reclaim::boot(tx, id)?,
        Phase::Installing | Phase::ReclaimRegister => {
            nudge_after(tx, op, machine, NUDGE_AFTER_MS)?;
        }
        Phase::Wiping | Phase::Waiting => nudge_after(tx, op, machine, RESURRECT_AFTER_MS)?,
        _ => {}
    }
    Ok(())
}

fn silent_since(tx: &Tx<'_>, op: &Tick, machine: &Machine) -> Timestamp {
    let log = tx.get::<EventLog>(&machine.id);
    let planned = log
        .and_then(|log| log.events.last())
        .map_or(Timestamp::ZERO, |e| e.time);
    let heard = op.heard.get(&machine.id).copied().unwrap_or_default();
    let last = log.map_or(Timestamp::ZERO, |log| log.last_event_time);
    last.max(heard)
        .max(planned)
        .max(machine.since)
        .max(op.listening_since)
}

/// Reboots a machine that says nothing; holds it when that does not help.
fn nudge_after(tx: &mut Tx<'_>, op: &Tick, mut machine: Machine, after_ms: u64) -> Step {
    let silence = tx.now.since_ms(silent_since(tx, op, &machine));
    let is_locked = machine.condition.state == Availability::Locked;
    if silence < after_ms || is_locked || machine.partition.is_none() {
        return Ok(());
    }
    if machine.step_attempts < reclaim::STEP_ATTEMPTS_MAX {
        let id = machine.id;
        machine.step_attempts += 1;
        machine.reason = format!("silent for {} min, rebooted by its BMC", silence / 60_000);
        tx.save(machine);
        return reclaim::nudge(tx, id);
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

fn purge(tx: &mut Tx<'_>) {
    let now = tx.now;
    let over = |end: Timestamp, keep_ms: u64| now >= end.plus_ms(keep_ms);
    let tables = tx.tables();
    let tokens: Vec<_> = tables
        .all::<Token>()
        .filter(|it| over(it.expires, KEEP_MS))
        .map(|it| it.id)
        .collect();
    let join: Vec<_> = tables
        .all::<JoinTicket>()
        .filter(|it| over(it.expires_at, KEEP_MS))
        // A redeemed ticket is the record that lets its agent come back after a long silence.
        .filter(|it| it.redeemed_at.is_none() || it.revoked_at.is_some())
        .map(|it| it.id)
        .collect();
    let boot: Vec<_> = tables
        .all::<BootTicket>()
        .filter(|it| over(it.expires_at, 0))
        .map(|it| it.id)
        .collect();
    let certificates: Vec<_> = tables
        .all::<Certificate>()
        .filter(|it| over(it.not_after, KEEP_CERTIFICATES_MS))
        .map(|it| it.serial.clone())
        .collect();
    let identities: Vec<_> = tables
        .all::<Identity>()
        .filter(|it| over(it.not_after, it.keep_ms()))
        .map(|it| it.id.clone())
        .collect();
    let keys: Vec<_> = tables
        .table::<Idempotency>()
        .iter()
        .filter(|(_, slot)| over(slot.value.expires_at, 0))
        .map(|(key, _)| key.clone())
        .collect();
    let invites: Vec<_> = tables
        .all::<Invite>()
        .filter(|it| over(it.expires_at, 0))
        .map(|it| it.id.clone())
        .collect();
    let components: Vec<_> = tables
        .all::<Component>()
        .filter(|it| over(it.reported_at, COMPONENT_LIFE_MS))
        .map(|it| it.id)
        .collect();
    tokens.iter().for_each(|id| drop(tx.delete::<Token>(id)));
    components
        .iter()
        .for_each(|id| drop(tx.delete::<Component>(id)));
    join.iter().for_each(|id| drop(tx.delete::<JoinTicket>(id)));
    boot.iter().for_each(|id| drop(tx.delete::<BootTicket>(id)));
    certificates
        .iter()
        .for_each(|serial| drop(tx.delete::<Certificate>(serial)));
    identities
        .iter()
        .for_each(|id| drop(tx.delete::<Identity>(id)));
    keys.iter()
        .for_each(|key| drop(tx.delete::<Idempotency>(key)));
    invites.iter().for_each(|id| drop(tx.delete::<Invite>(id)));
}
