//! Writes of claims: the conditions are judged with each.

use std::sync::Arc;

use super::conditions::{HostFacts, judge};
use crate::claim::entity::{Claim, ClaimBinding, ClaimMetadata};
use crate::claim::phase::HostSight;
use crate::machine::entity::{ClaimGrant, Machine};
use crate::pool::entity::PoolHost;
use crate::pool::read::published_metadata;
use crate::tables::{Tables, Tx};

/// The grant of a claim's binding.
pub(super) const fn grant_of(claim: &Claim, binding: &ClaimBinding) -> ClaimGrant {
    ClaimGrant {
        claim: claim.id,
        epoch: binding.epoch,
    }
}

/// The host of a claim as its conditions need it. `None` means that it has none.
pub(super) fn facts_of(tables: &Tables, claim: &Claim) -> Option<HostFacts> {
    let binding = claim.binding.as_ref()?;
    let machine = tables.get::<Machine>(&binding.machine);
    let host = tables.get::<PoolHost>(&binding.machine);
    let own = host.and_then(|host| host.binding.as_ref());
    let own = own.filter(|own| own.claim == claim.id);
    let failed = machine.map(|machine| machine.reason.clone());
    Some(HostFacts {
        sight: HostSight::of(machine.map(AsRef::as_ref), grant_of(claim, binding)),
        is_revoked: own.is_some_and(|own| own.revoked_at.is_some()),
        is_held: host.is_some_and(|host| !host.holds.is_empty()),
        failure: failed.unwrap_or_default(),
    })
}

/// The metadata of the host of a claim, by the host's own word. Empty without a host.
fn host_metadata(tables: &Tables, claim: &Claim) -> ClaimMetadata {
    let binding = claim.binding.as_ref();
    let host = binding.and_then(|binding| tables.get::<PoolHost>(&binding.machine));
    let own = host.filter(|host| {
        let bound = host.binding.as_ref();
        bound.is_some_and(|bound| bound.claim == claim.id)
    });
    let Some(host) = own else {
        return ClaimMetadata::default();
    };
    let published = published_metadata(tables, host);
    ClaimMetadata {
        revision: 0,
        labels: published.labels,
        annotations: published.annotations,
        omitted: u32::try_from(published.omitted).unwrap_or(u32::MAX),
    }
}

/// Writes a claim, with its conditions judged and its metadata made anew.
pub(super) fn put(tx: &mut Tx<'_>, mut claim: Claim) -> Arc<Claim> {
    if !claim.spec.paused {
        claim.observed_generation = claim.meta.generation;
    }
    let facts = facts_of(tx.tables(), &claim);
    claim.conditions = judge(&claim, facts.as_ref(), tx.now);
    claim.metadata.take(host_metadata(tx.tables(), &claim));
    tx.save(claim)
}
