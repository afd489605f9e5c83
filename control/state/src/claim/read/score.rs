//! The best of the free hosts that fit a claim.
//!
//! Every replica must choose the same host: nothing here depends on more than tables and claim.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proto_types::MachineId;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::needs::{ClaimNeeds, value_of};
use crate::claim::entity::Claim;
use crate::pool::entity::{HostPool, HostShape, PoolHost};
use crate::tables::{ShapeHosts, Tables};

/// Most hosts of a rack, and racks of a shape that hold none of the claim's group, that are looked
/// at: the ones beyond the first stand in for hosts that turn out not to be ready.
const SPARES_MAX: usize = 4;

/// How well a shape fits: less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShapeRank {
    preferred: Reverse<u32>,
    is_elsewhere: bool,
    surplus: usize,
}

impl ShapeRank {
    /// The rank of a shape that fits. Hosts with few labels beyond those that the claim asks for
    /// come first: the others are kept for the claims that ask for them.
    pub(super) fn of(needs: &ClaimNeeds<'_>, pool: &HostPool, shape: &HostShape) -> Self {
        let spec = needs.spec();
        let holds = spec.preferred.iter().filter(|term| {
            let selector = &term.selector;
            selector.holds(|key| value_of(pool, shape, key))
        });
        let is_wanted = |key: &String| !pool.publishes(key) || spec.selector.mentions(key);
        let unasked = shape.labels.keys().filter(|key| !is_wanted(key)).count();
        let domain = spec.domain.as_ref();
        Self {
            preferred: Reverse(holds.map(|term| term.weight).sum()),
            is_elsewhere: domain.is_some_and(|wish| wish.name != shape.domain),
            surplus: unasked + shape.taints.len(),
        }
    }
}

/// A number that differs from claim to claim, so that equal claims do not all begin with the same
/// host.
fn pivot_of(claim: &Claim) -> u64 {
    let hash = Sha256::digest(claim.id.uuid().as_bytes());
    let bytes = hash.iter().take(8);
    bytes.fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Number of hosts by rack that claims of the same group have.
fn loads<'a>(tables: &'a Tables, claim: &Claim) -> BTreeMap<&'a str, usize> {
    let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
    let bound = tables.index().hosts.projects.get(&claim.project);
    let hosts = bound.into_iter().flatten();
    for host in hosts.filter_map(|id| tables.get::<PoolHost>(id)) {
        let binding = host.binding.as_ref();
        if binding.is_some_and(|binding| binding.spread == claim.spec.spread) {
            *loads.entry(host.seen.rack.as_str()).or_default() += 1;
        }
    }
    loads
}

/// Free hosts of shapes of the same rank, the best first: in the rack that holds the fewest of the
/// claim's group, with the fewest installations.
pub(super) fn candidates<'a>(
    tables: &Tables,
    claim: &Claim,
    shapes: impl Iterator<Item = &'a ShapeHosts>,
) -> Vec<MachineId> {
    let loads = loads(tables, claim);
    let pivot = pivot_of(claim);
    let start = MachineId::new(Uuid::from_u64_pair(pivot, pivot));
    let mut found = Vec::new();
    for hosts in shapes {
        let from = (pivot, String::new());
        let racks = hosts.free.range(from.clone()..);
        let racks = racks.chain(hosts.free.range(..from));
        let mut unused = 0;
        for ((hash, rack), free) in racks {
            let load = loads.get(rack.as_str()).copied().unwrap_or_default();
            let Some((wear, _)) = free.first() else {
                continue;
            };
            let after = free.range((*wear, start)..);
            let after = after.take_while(|(other, _)| other == wear);
            let least = after.chain(free.iter());
            let turn = hash.wrapping_sub(pivot);
            found.extend(
                least
                    .take(SPARES_MAX)
                    .map(|(wear, id)| (load, *wear, turn, *id)),
            );
            unused += usize::from(load == 0);
            // Racks beyond hold no fewer of the group.
            if unused >= SPARES_MAX {
                break;
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, _, _, id)| id).collect()
}
