//! What time alone changes: signs of life, deadlines, and records that have had their day.

use std::sync::Arc;

use proto_errors::Error;
use proto_types::Timestamp;

use crate::audit::apply::retention;
use crate::cluster::apply::clock::{self, TickTime};
use crate::cluster::command::Tick;
use crate::cluster::entity::{COMPONENT_LIFE_MS, Component};
use crate::identity::apply::{ca, identity};
use crate::identity::entity::{BootTicket, Certificate, Identity, JoinTicket, Token};
use crate::machine::apply::deadlines::{deadlines, may_be_due, waiting};
use crate::machine::apply::liveliness::{judged, liveliness};
use crate::machine::apply::order_deadlines::{expire_orders, late};
use crate::machine::apply::strangers::{forget_strangers, old_strangers};
use crate::machine::entity::Idempotency;
use crate::network::entity::CoolingNumber;
use crate::reply::Reply;
use crate::tables::{Entity, Record, Tables, Tx};
use crate::tenancy::entity::Invite;

/// Ended tokens and tickets are kept for people to look at, milliseconds: a week.
const KEEP_MS: u64 = 7 * 24 * 3_600_000;
/// Ended certificates are kept for a little, so that a slow clock finds them, milliseconds.
const KEEP_CERTIFICATES_MS: u64 = 10 * 60_000;

type Result = std::result::Result<Reply, Error>;

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
