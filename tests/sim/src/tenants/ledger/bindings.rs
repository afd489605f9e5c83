//! At most one claim a host and one host a claim, and host, claim and machine agree about it.

use std::collections::BTreeSet;

use control_state::{Claim, Machine, PoolHost};
use proto_types::ClaimId;

use super::applied::{Applied, Changed};

pub(super) fn check(applied: &Applied<'_>) -> Result<(), String> {
    let mut holders = BTreeSet::new();
    for host in applied.tables.all::<PoolHost>() {
        check_host(applied, host, &mut holders)?;
    }
    for claim in applied.claims().filter_map(|claim| claim.after) {
        if claim.state.has_host() != holders.contains(&claim.id) {
            return Err(format!("no host says what {claim:?} says"));
        }
    }
    applied.hosts().try_for_each(|host| check_epoch(&host))?;
    let mut machines = applied.machines().filter_map(|machine| machine.after);
    machines.try_for_each(|machine| check_machine(applied, machine))
}

fn check_host(
    applied: &Applied<'_>,
    host: &PoolHost,
    holders: &mut BTreeSet<ClaimId>,
) -> Result<(), String> {
    let Some(binding) = &host.binding else {
        return Ok(());
    };
    if !holders.insert(binding.claim) {
        return Err(format!("claim {} has two hosts", binding.claim));
    }
    let claim = applied.tables.get::<Claim>(&binding.claim);
    let is_agreed = claim.is_some_and(|claim| {
        let own = claim.binding.as_ref();
        own.is_some_and(|own| own.machine == host.machine && own.epoch == host.epoch)
            && claim.state.has_host()
            && claim.project == binding.project
    });
    match is_agreed {
        true => Ok(()),
        false => Err(format!("{host:?} is bound to {claim:?}")),
    }
}

/// Each binding has its number: the next one, and the same as long as it lasts.
fn check_epoch(host: &Changed<'_, PoolHost>) -> Result<(), String> {
    let (Some(before), Some(after)) = (host.before, host.after) else {
        return Ok(());
    };
    let claim = |host: &PoolHost| host.binding.as_ref().map(|binding| binding.claim);
    let is_new = claim(after).is_some() && claim(after) != claim(before);
    if after.epoch == before.epoch + u64::from(is_new) {
        return Ok(());
    }
    Err(format!("an epoch was left out or used twice: {after:?}"))
}

/// A machine is in the pool of its host and nobody's own; one that serves a claim serves the one that
/// its host is bound to, or is on its way back.
fn check_machine(applied: &Applied<'_>, machine: &Machine) -> Result<(), String> {
    let host = applied.tables.get::<PoolHost>(&machine.id);
    if machine.pool.as_ref() != host.map(|host| &host.pool) {
        return Err(format!("no host is in the pool of {machine:?}"));
    }
    if host.is_some() && !machine.tenure.is_default() {
        return Err(format!("a host is somebody's: {machine:?}"));
    }
    let allocation = machine.allocation.as_ref();
    let Some(grant) = allocation.and_then(|allocation| allocation.claim) else {
        return Ok(());
    };
    let binding = host.and_then(|host| host.binding.as_ref());
    let is_current = binding.is_some_and(|binding| binding.claim == grant.claim);
    match is_current || machine.is_leaving() {
        true => Ok(()),
        false => Err(format!("no claim has what serves one: {machine:?}")),
    }
}
