//! A host's row follows its machine, and its claim follows both.

use proto_types::{ClaimId, MachineId, ProjectId, Timestamp};

use super::verify::{set_level, verify};
use super::write::{facts_of, put};
use super::{bind, power, provision};
use crate::claim::entity::{Claim, ClaimBinding, ClaimState, LostRule, PendingReason};
use crate::claim::phase::{ClaimEvent, HostSight, enter, event_of};
use crate::claim::read::claimant;
use crate::machine::entity::{Availability, Machine};
use crate::machine::read::obstacle;
use crate::pool::entity::{PoolHost, SeenMachine};
use crate::tables::{Tables, Tx};

/// The machine as its host repeats it.
pub(super) fn seen(tables: &Tables, machine: &Machine) -> SeenMachine {
    let is_ready = machine.allocation.is_none()
        && machine.condition.state == Availability::Available
        && obstacle(tables, machine).is_none();
    SeenMachine {
        partition: machine.partition.clone(),
        size: machine.size.clone(),
        rack: machine.rack.clone(),
        is_ready,
    }
}

/// `true` if the policies of a host and of its pool admit a project.
fn admits(tables: &Tables, host: &PoolHost, project: ProjectId) -> bool {
    let index = &tables.index().hosts;
    let claimant = claimant(tables, project);
    let by_pool = index.policies.get(&host.pool);
    let by_host = index.narrowing.get(&host.only);
    by_pool.is_some_and(|policies| policies.admits(&claimant).is_some())
        && by_host.is_none_or(|policies| policies.admits(&claimant).is_some())
}

/// Notes since when the policies do not admit the project that has a host, and ends a reservation
/// for one that they do not admit.
fn judge_by_policies(tables: &Tables, host: &mut PoolHost, now: Timestamp) {
    let reserved = host.reserved.as_ref().map(|reserved| reserved.project);
    if reserved.is_some_and(|project| !admits(tables, host, project)) {
        host.reserved = None;
    }
    let project = host.binding.as_ref().map(|binding| binding.project);
    let is_admitted = project.is_none_or(|project| admits(tables, host, project));
    if let Some(binding) = &mut host.binding {
        binding.revoked_at = match is_admitted {
            true => None,
            false => binding.revoked_at.or(Some(now)),
        };
    }
}

/// Brings a host up to date with its machine, and its claim with both.
pub(super) fn settle(tx: &mut Tx<'_>, id: MachineId) {
    let Some(mut host) = tx.get::<PoolHost>(&id).map(|host| PoolHost::clone(host)) else {
        return;
    };
    let Some(machine) = tx.get::<Machine>(&id).cloned() else {
        let claim = host.binding.as_ref().map(|binding| binding.claim);
        tx.delete::<PoolHost>(&id);
        if let Some(claim) = claim {
            lose(tx, claim, "its machine was retired", None);
        }
        return;
    };
    // First: with the reservation ends that less than a full wipe is enough.
    judge_by_policies(tx.tables(), &mut host, tx.now);
    set_level(tx, &host, &machine);
    verify(tx, &mut host, &machine);
    if let Some(machine) = tx.get::<Machine>(&id) {
        host.seen = seen(tx.tables(), machine);
    }
    let claim = host.binding.as_ref().map(|binding| binding.claim);
    tx.save(host);
    if let Some(claim) = claim {
        drive(tx, claim);
    }
}

/// Takes a claim on as far as its host allows.
pub(super) fn drive(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    if !claim.state.has_host() {
        return;
    }
    let facts = facts_of(tx.tables(), &claim);
    let sight = facts.map_or(HostSight::Missing, |facts| facts.sight);
    match event_of(claim.state, sight) {
        Some(ClaimEvent::HostRuns) => runs(tx, claim),
        Some(ClaimEvent::HostClean) => cleaned(tx, claim),
        Some(ClaimEvent::HostLost) => {
            let is_worn = sight == HostSight::Unwipeable;
            let quarantine = is_worn.then(|| "a disk of it could not be wiped".to_owned());
            lose(tx, id, "its host was taken away", quarantine);
        }
        _ => go_on(tx, claim, sight),
    }
}

/// The step of a claim whose host is as the claim's state says.
fn go_on(tx: &mut Tx<'_>, claim: Claim, sight: HostSight) {
    let id = claim.id;
    let (state, is_paused) = (claim.state, claim.spec.paused);
    let waits = claim.trouble.as_ref().and_then(|trouble| trouble.retry_at);
    let is_waiting = waits.is_some_and(|at| tx.now < at);
    put(tx, claim);
    match state {
        ClaimState::Bound if sight == HostSight::Clean => retry_install(tx, id),
        ClaimState::Active if !is_paused => power::reconcile(tx, id),
        ClaimState::Deprovisioning | ClaimState::Releasing if !is_waiting => {
            provision::free(tx, id);
        }
        _ => {}
    }
}

/// Installs a bound claim: at once when its machine has become ready, and else only when its time
/// has come.
fn retry_install(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(claim) = tx.get::<Claim>(&id).cloned() else {
        return;
    };
    let is_known = claim.trouble.as_ref().is_some_and(|trouble| {
        let is_early = trouble.retry_at.is_none_or(|at| tx.now < at);
        is_early && trouble.reason != provision::NOT_READY
    });
    let machine = claim.binding.as_ref();
    let machine = machine.and_then(|binding| tx.get::<Machine>(&binding.machine));
    let is_ready = machine.is_some_and(|machine| obstacle(tx.tables(), machine).is_none());
    if !is_known && (is_ready || claim.trouble.is_none()) {
        provision::begin(tx, id);
    }
}

fn runs(tx: &mut Tx<'_>, mut claim: Claim) {
    let id = claim.id;
    enter(&mut claim, ClaimEvent::HostRuns, tx.now);
    claim.trouble = None;
    claim.note(tx.now, "Installed", "the installed system runs");
    put(tx, claim);
    power::reconcile(tx, id);
}

/// The host of a claim is clean again: the claim is over, or may install anew.
fn cleaned(tx: &mut Tx<'_>, mut claim: Claim) {
    let id = claim.id;
    let Some(binding) = claim.binding.clone() else {
        return;
    };
    let quarantine = tx
        .get::<PoolHost>(&binding.machine)
        .and_then(|host| host.quarantine.clone());
    if quarantine.is_some() {
        return lose(tx, id, "its host is in quarantine", quarantine);
    }
    enter(&mut claim, ClaimEvent::HostClean, tx.now);
    claim.trouble = None;
    if claim.state == ClaimState::Gone {
        claim.binding = None;
        claim.note(tx.now, "Released", "its host is clean");
        put(tx, claim);
        bind::unbind(tx, binding.machine, None);
        return;
    }
    claim.note(tx.now, "Wiped", "its host is clean");
    claim.binding = claim.binding.map(|binding| ClaimBinding {
        allocation: None,
        ..binding
    });
    put(tx, claim);
    provision::begin(tx, id);
}

/// Takes the host away from a claim. With a released claim it is over.
pub(super) fn lose(tx: &mut Tx<'_>, id: ClaimId, why: &str, quarantine: Option<String>) {
    let Some(mut claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    if !enter(&mut claim, ClaimEvent::HostLost, tx.now) {
        return;
    }
    let binding = claim.binding.take();
    claim.trouble = None;
    claim.note(tx.now, "HostLost", why);
    let rebinds = claim.state == ClaimState::Lost && claim.spec.on_lost == LostRule::Rebind;
    if rebinds && enter(&mut claim, ClaimEvent::Rebound, tx.now) {
        claim.queue.number = tx.next_sequence();
        claim.queue.reason = PendingReason::Queued;
    }
    put(tx, claim);
    if let Some(binding) = binding {
        bind::unbind(tx, binding.machine, quarantine);
    }
    if rebinds {
        bind::seek(tx, id);
    }
}
