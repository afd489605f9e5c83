//! Steps of claims and hosts that come with time, and a second look at what waits.
//!
//! Most of what waits is woken by the command that changes its case. The second look of the tick
//! finds the rest: hosts whose cables were repaired, claims beyond the bound of a command's wakes.

use std::collections::BTreeSet;

use proto_types::{ClaimId, MachineId, PoolId, Timestamp};
use uuid::Uuid;

use super::settle::{lose, seen, settle};
use super::{bind, provision};
use crate::claim::entity::{CLAIM_KEPT_MS, Claim, ClaimState};
use crate::claim::read::survey;
use crate::cluster::read::restored;
use crate::machine::entity::Machine;
use crate::machine::read::is_left_alone;
use crate::pool::entity::{HostPool, PoolHost, RevokeRule};
use crate::tables::{QueuePlace, Tables, Tx};

/// Most claims, and hosts, that a tick looks at again.
const LOOKS_MAX: usize = 64;
/// Most bound hosts that a tick holds against changed policies.
const CHECKS_MAX: usize = 1_000;
/// Most steps of a kind that a tick takes; the others follow with the next one.
const STEPS_MAX: usize = 256;
/// Time after which the second look begins at another place, milliseconds.
const TURN_MS: u64 = 2_000;

/// Takes every step that is due.
pub(crate) fn steps(tx: &mut Tx<'_>) {
    for id in due_claims(tx.tables(), tx.now) {
        take_on(tx, id);
    }
    for id in ended_reservations(tx.tables(), tx.now) {
        end_reservation(tx, id);
    }
    for id in evictions(tx.tables(), tx.now) {
        evict(tx, id);
    }
    let pools: Vec<_> = tx.tables().index().hosts.rechecks.iter().cloned().collect();
    for pool in pools {
        recheck(tx, &pool);
    }
    for id in changed_hosts(tx.tables(), tx.now) {
        settle(tx, id);
    }
    for (_, _, id) in changed_claims(tx.tables(), tx.now) {
        bind::seek(tx, id);
    }
}

/// `true` if [`steps`] would change something now.
pub(crate) fn is_due(tables: &Tables, now: Timestamp) -> bool {
    if tables.index().hosts.has_no_pool() && tables.index().claims.due(now).next().is_none() {
        return false;
    }
    !due_claims(tables, now).is_empty()
        || !ended_reservations(tables, now).is_empty()
        || !evictions(tables, now).is_empty()
        || !tables.index().hosts.rechecks.is_empty()
        || !changed_hosts(tables, now).is_empty()
        || !changed_claims(tables, now).is_empty()
}

fn due_claims(tables: &Tables, now: Timestamp) -> Vec<ClaimId> {
    tables.index().claims.due(now).take(STEPS_MAX).collect()
}

/// Deletes the record of a claim that is over, or tries a failed step again.
fn take_on(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    if claim.state == ClaimState::Gone {
        if tx.now.since_ms(claim.since) >= CLAIM_KEPT_MS {
            tx.delete::<Claim>(&id);
        }
        return;
    }
    // The time is over whatever comes of it: a step that is not due any more must not be due for
    // ever.
    let mut next = claim.clone();
    if let Some(trouble) = &mut next.trouble {
        trouble.retry_at = None;
    }
    tx.save(next);
    match claim.state {
        ClaimState::Bound => provision::begin(tx, id),
        ClaimState::Deprovisioning | ClaimState::Releasing => provision::free(tx, id),
        _ => {}
    }
}

fn ended_reservations(tables: &Tables, now: Timestamp) -> Vec<MachineId> {
    let ends = tables.index().hosts.reservation_ends.iter();
    let ended = ends.take_while(|(until, _)| *until <= now);
    ended.map(|(_, id)| *id).take(STEPS_MAX).collect()
}

fn end_reservation(tx: &mut Tx<'_>, id: MachineId) {
    if let Some(mut host) = tx.get::<PoolHost>(&id).map(|host| PoolHost::clone(host)) {
        host.reserved = None;
        tx.save(host);
        // At once, before a claim searches: what is left for the project must be wiped first.
        settle(tx, id);
    }
}

/// Hosts of claims that the policies of their pool do not admit any more, and whose grace is over. None
/// while a restored state waits for its operator, and no locked one, which control leaves alone.
fn evictions(tables: &Tables, now: Timestamp) -> Vec<MachineId> {
    let evicts = |pool: &HostPool| matches!(pool.on_revoke, RevokeRule::Evict { .. });
    if restored(tables).is_some() || !tables.all::<HostPool>().any(|pool| evicts(pool)) {
        return Vec::new();
    }
    let revoked = tables.index().hosts.revoked.iter();
    let over = revoked.filter(|(at, id)| {
        let host = tables.get::<PoolHost>(id);
        let pool = host.and_then(|host| tables.get::<HostPool>(&host.pool));
        match pool.map(|pool| pool.on_revoke) {
            Some(RevokeRule::Evict { grace_ms }) => {
                let claim = host.and_then(|host| host.binding.as_ref());
                let claim = claim.and_then(|binding| tables.get::<Claim>(&binding.claim));
                let is_leaving = claim.is_none_or(|claim| claim.state == ClaimState::Releasing);
                let machine = tables.get::<Machine>(id);
                let is_locked = machine.is_some_and(|machine| is_left_alone(machine));
                !is_leaving && !is_locked && now.since_ms(*at) >= grace_ms
            }
            _ => false,
        }
    });
    over.map(|(_, id)| *id).take(STEPS_MAX).collect()
}

fn evict(tx: &mut Tx<'_>, id: MachineId) {
    let host = tx.get::<PoolHost>(&id);
    let claim = host.and_then(|host| host.binding.as_ref().map(|binding| binding.claim));
    if let Some(claim) = claim {
        provision::free(tx, claim);
        lose(
            tx,
            claim,
            "the pool does not admit the project any more",
            None,
        );
    }
}

/// Holds bound hosts of a pool against policies that changed, in pieces.
fn recheck(tx: &mut Tx<'_>, id: &PoolId) {
    let Some(mut pool) = tx.get::<HostPool>(id).map(|pool| HostPool::clone(pool)) else {
        return;
    };
    let Some(from) = pool.unchecked_from else {
        return;
    };
    let hosts = tx.tables().index().hosts.pools.get(id);
    let mut rest = hosts
        .into_iter()
        .flat_map(|hosts| hosts.range(from..))
        .copied();
    let piece: Vec<MachineId> = rest.by_ref().take(CHECKS_MAX).collect();
    pool.unchecked_from = rest.next();
    for machine in piece {
        settle(tx, machine);
    }
    tx.save(pool);
}

/// The place at which the second look begins now.
fn turn(now: Timestamp) -> Uuid {
    let number = (now.ms() / TURN_MS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Uuid::from_u64_pair(number, number)
}

/// Hosts that nobody has, and whose machine is ready or not, other than the index says.
fn changed_hosts(tables: &Tables, now: Timestamp) -> Vec<MachineId> {
    let benched = &tables.index().hosts.benched;
    let start = MachineId::new(turn(now));
    let looked = benched.range(start..).chain(benched.range(..start));
    let changed = looked.take(LOOKS_MAX).filter(|id| {
        let host = tables.get::<PoolHost>(id);
        let machine = tables.get::<Machine>(id);
        match (host, machine) {
            (Some(host), Some(machine)) => seen(tables, machine) != host.seen,
            _ => false,
        }
    });
    changed.copied().collect()
}

/// Waiting claims that a host is there for, or that wait for another reason than they say, in the order
/// of their places.
fn changed_claims(tables: &Tables, now: Timestamp) -> BTreeSet<QueuePlace> {
    let heads: Vec<QueuePlace> = tables.index().claims.heads().collect();
    let count = heads.len().max(1);
    let turn = usize::try_from((now.ms() / TURN_MS) % u64::try_from(count).unwrap_or(1));
    let skipped = (turn.unwrap_or(0) * LOOKS_MAX) % count;
    let looked = heads
        .iter()
        .cycle()
        .skip(skipped)
        .take(LOOKS_MAX.min(heads.len()));
    let changed = looked.filter(|(_, _, id)| {
        let Some(claim) = tables.get::<Claim>(id) else {
            return false;
        };
        let found = survey(tables, claim, now);
        found.host.is_some()
            || !found.unready.is_empty()
            || (found.reason, found.matching) != (claim.queue.reason, claim.queue.matching)
    });
    changed.copied().collect()
}
