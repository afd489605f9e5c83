//! The tick: everything that changes because time passes. Liveliness, deadlines, rotations, and
//! the removal of expired records.

use std::sync::Arc;

use proto_types::Timestamp;

use crate::audit::apply::retention;
use crate::claim::apply::due;
use crate::cluster::apply::clock::{self, TickTime};
use crate::cluster::command::Tick;
use crate::cluster::entity::{COMPONENT_LIFE_MS, Component};
use crate::identity::apply::{ca, identity};
use crate::identity::entity::{BootTicket, Certificate, Identity, JoinTicket, Token};
use crate::lease::apply::expiry::expire_leases;
use crate::lease::read::due_leases;
use crate::machine::apply::bmc_report::{mark_unreached, unreached};
use crate::machine::apply::deadlines::{deadlines, may_be_due, waiting};
use crate::machine::apply::liveliness::{judged, liveliness};
use crate::machine::apply::order_deadlines::{expire_orders, late};
use crate::machine::apply::strangers::{forget_strangers, old_strangers};
use crate::machine::entity::Idempotency;
use crate::network::entity::CoolingNumber;
use crate::reply::{ApplyResult, Reply};
use crate::rollout::entity::AgentProgram;
use crate::tables::{Entity, Record, Tables, Tx};
use crate::tenancy::entity::Invite;

/// Retention of tokens and join tickets after their expiry, milliseconds: a week, in which an
/// operator can still look them up. The next tick after it deletes them.
const KEEP_MS: u64 = 7 * 24 * 3_600_000;
/// Retention of certificates after their expiry, milliseconds: ten minutes. A node whose clock is
/// behind by less still finds the record of a certificate that it takes for valid.
const KEEP_CERTIFICATES_MS: u64 = 10 * 60_000;

pub(crate) fn tick(tx: &mut Tx<'_>, op: &Tick) -> ApplyResult {
    match clock::advance(tx, op) {
        // All steps below judge by the cluster's time, which never goes back. With the leader's own
        // clock, a change of leader to a slower clock would move every deadline.
        TickTime::Believed(now) => tx.now = now,
        // Nothing is judged: a clock that jumped ahead would end every token, ticket and deadline
        // at once. `advance` has recorded the jump, which an operator accepts or corrects.
        TickTime::Held => return Ok(Reply::None),
    }
    // Liveliness first: the deadlines judge the machines that it marks.
    liveliness(tx, op);
    mark_unreached(tx, op);
    expire_orders(tx, op)?;
    deadlines(tx, op)?;
    expire_leases(tx)?;
    forget_strangers(tx);
    identity::finish_rotations(tx);
    ca::advance_rotation(tx);
    due::steps(tx);
    purge(tx);
    retention::retain(tx);
    Ok(Reply::None)
}

/// `true` if a tick may change something now. False positives are allowed, false negatives are
/// not. The leader asks before it proposes a tick: an idle cluster writes no log entries.
pub fn tick_may_change(tables: &Tables, op: &Tick, now: Timestamp) -> bool {
    // Each check here mirrors one step of `tick`. A step without its check would run only when
    // another one happens to be due.
    if clock::is_due(tables, op, now) {
        return true;
    }
    let TickTime::Believed(now) = clock::tick_time(tables, now) else {
        return false;
    };
    judged(tables, op, now).next().is_some()
        || unreached(tables, op, now).next().is_some()
        || late(tables, op, now).next().is_some()
        || waiting(tables, op, now).any(|machine| may_be_due(tables, op, machine, now))
        || due_leases(tables, now).next().is_some()
        || old_strangers(tables, now).next().is_some()
        || !identity::of_replaced_keys(tables, now).is_empty()
        || ca::is_rotating(tables)
        || due::is_due(tables, now)
        || !outdated(tables, now).is_empty()
        || retention::is_due(tables, now)
}

/// Deletes the expired records.
fn purge(tx: &mut Tx<'_>) {
    for record in outdated(tx.tables(), tx.now) {
        match record {
            Record::Token(token) => drop(tx.delete::<Token>(&token.id)),
            Record::Component(component) => drop(tx.delete::<Component>(&component.id)),
            Record::JoinTicket(ticket) => drop(tx.delete::<JoinTicket>(&ticket.id)),
            Record::BootTicket(ticket) => drop(tx.delete::<BootTicket>(&ticket.id)),
            Record::Certificate(one) => drop(tx.delete::<Certificate>(&one.serial)),
            Record::Identity(identity) => {
                tx.delete::<AgentProgram>(&identity.id);
                tx.delete::<Identity>(&identity.id);
            }
            Record::Idempotency(record) => drop(tx.delete::<Idempotency>(&record.key())),
            Record::Invite(invite) => drop(tx.delete::<Invite>(&invite.id)),
            Record::CoolingNumber(one) => drop(tx.delete::<CoolingNumber>(&one.number)),
            // `outdated` returns no other kinds.
            _ => {}
        }
    }
}

/// The records whose retention has passed.
fn outdated(tables: &Tables, now: Timestamp) -> Vec<Record> {
    let mut all = Vec::new();
    let over = |end: Timestamp, keep_ms: u64| now >= end.plus_ms(keep_ms);
    gather(tables, &mut all, |token: &Token| {
        over(token.expires, KEEP_MS)
    });
    gather(tables, &mut all, |component: &Component| {
        over(component.reported_at, COMPONENT_LIFE_MS)
    });
    gather(tables, &mut all, |ticket: &JoinTicket| {
        // A redeemed ticket is kept: it lets its agent come back after a long silence, or after a
        // restore from a backup that is older than the agent's identity.
        let is_of_use = ticket.redeemed_at.is_some() && ticket.revoked_at.is_none();
        over(ticket.expires_at, KEEP_MS) && !is_of_use
    });
    gather(tables, &mut all, |ticket: &BootTicket| {
        over(ticket.expires_at, 0)
    });
    gather(tables, &mut all, |certificate: &Certificate| {
        over(certificate.not_after, KEEP_CERTIFICATES_MS)
    });
    gather(tables, &mut all, |identity: &Identity| {
        over(identity.not_after, identity.keep_ms())
    });
    gather(tables, &mut all, |record: &Idempotency| {
        over(record.expires_at, 0)
    });
    gather(tables, &mut all, |invite: &Invite| {
        over(invite.expires_at, 0)
    });
    gather(tables, &mut all, |number: &CoolingNumber| {
        over(number.until, 0)
    });
    all
}

/// Adds the objects of a kind that the predicate selects.
fn gather<T: Entity>(tables: &Tables, all: &mut Vec<Record>, is_asked: impl Fn(&T) -> bool) {
    let found = tables.all::<T>().filter(|object| is_asked(object));
    all.extend(found.map(|object| T::record(Arc::clone(object))));
}
