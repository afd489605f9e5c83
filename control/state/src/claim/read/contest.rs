//! The claim that a free host is for.

use std::cmp::Reverse;

use proto_types::{ClaimId, Timestamp};

use super::needs::ClaimNeeds;
use crate::claim::entity::Claim;
use crate::cluster::read::restored;
use crate::holdings::machine_room;
use crate::pool::entity::{HostPool, HostShape, PoolHost};
use crate::tables::Tables;

/// The waiting claim that gets a free host: of those that it fits, the one with the highest priority
/// that the pool allows, and among equals the one that waits longest. Only the first claim of each
/// class is asked.
pub(crate) fn contest(tables: &Tables, host: &PoolHost, now: Timestamp) -> Option<ClaimId> {
    if restored(tables).is_some() || tables.index().claims.is_idle() {
        return None;
    }
    let pool = tables.get::<HostPool>(&host.pool)?;
    let shape = HostShape::of(host);
    let heads = tables.index().claims.heads();
    let heads = heads.filter_map(|(_, _, id)| tables.get::<Claim>(&id));
    let mut asked: Vec<_> = heads
        .filter(|claim| may_have(tables, claim, host))
        .filter_map(|claim| {
            let needs = ClaimNeeds::of(tables, claim, now);
            let highest = needs.admitted(&pool.id)?;
            let fits = needs.is_in_domain(&shape) && needs.fits(pool, &shape);
            let priority = claim.spec.priority.min(highest);
            fits.then_some((Reverse(priority), claim.queue.number, needs))
        })
        .collect();
    asked.sort_by_key(|(priority, number, _)| (*priority, *number));
    let served = asked.into_iter().find(|(_, _, needs)| {
        let room = machine_room(tables, needs.claim.project);
        room.takes(shape.size.as_ref()) && needs.can_be_installed(&shape)
    });
    served.map(|(_, _, needs)| needs.claim.id)
}

/// `true` unless the host is reserved for others, or the claim waits for a host of its own.
fn may_have(tables: &Tables, claim: &Claim, host: &PoolHost) -> bool {
    // Data of the project that had it may be left, and nobody has it: it is about to be wiped.
    if host.light_wipe.is_some() && host.reserved.is_none() {
        return false;
    }
    let reuse = claim.spec.reuse.as_ref();
    match (&host.reserved, reuse) {
        (Some(reserved), Some(reuse)) => {
            reserved.project == claim.project && reserved.key == reuse.key
        }
        (Some(_), None) => false,
        (None, None) => true,
        (None, Some(reuse)) => {
            let key = (claim.project, reuse.key.clone());
            let has_earlier = tables.index().hosts.reserved.contains_key(&key);
            !reuse.required && !has_earlier
        }
    }
}
