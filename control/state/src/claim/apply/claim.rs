//! Creation, change and end of claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::ClaimId;

use super::checks::{check_budget, check_name, check_spec, class_of, own};
use super::write::put;
use super::{bind, power, provision, settle};
use crate::claim::command::{CreateClaim, DeleteClaim, UpdateClaim};
use crate::claim::entity::{
    Claim, ClaimMetadata, ClaimPower, ClaimQueue, ClaimSpec, ClaimState, PendingReason,
};
use crate::claim::phase::{ClaimEvent, enter};
use crate::holdings::may_reserve;
use crate::machine::apply::wipe::known_serials;
use crate::machine::entity::Machine;
use crate::meta::{LabelsUpdate, Meta, check_generation};
use crate::pool::entity::{HostPool, HostReservation, PoolHost};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;
use crate::tenancy::entity::Project;

/// Creates a claim, and binds it at once if a host fits.
pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateClaim) -> ApplyResult {
    tx.tables().require::<Project>(&op.project)?;
    let known = tx.tables().index().claims.named(op.project, &op.name);
    let known = known.and_then(|id| tx.get::<Claim>(&id)).cloned();
    if let Some(adopted) = op.adopt {
        return adopt(tx, op, adopted, known);
    }
    if let Some(known) = known {
        // The client lost its answer: the key is its, and so is the claim.
        if known.spec == op.spec && known.meta.labels == op.labels {
            return Ok(Reply::Claim(known));
        }
        let hint = "change it: metalmesh claim update NAME; or choose another name";
        return Err(Error::already_exists("claim", &op.name).hint(hint));
    }
    let claim = pending(tx, op)?;
    check_spec(tx, &claim)?;
    check_budget(tx, &claim, true)?;
    let claim = tx.create(claim)?;
    put(tx, Claim::clone(&claim));
    act(tx, op.id);
    shown(tx, op.id)
}

/// A new claim at the end of the queue.
fn pending(tx: &mut Tx<'_>, op: &CreateClaim) -> Result<Claim, Error> {
    let mut meta = Meta::default();
    LabelsUpdate::Replace(op.labels.clone()).apply(&mut meta.labels)?;
    Ok(Claim {
        id: op.id,
        meta,
        project: op.project,
        name: op.name.clone(),
        created_by: tx.actor.to_owned(),
        spec: op.spec.clone(),
        state: ClaimState::Pending,
        since: tx.now,
        observed_generation: 0,
        queue: ClaimQueue {
            class: class_of(&op.spec)?,
            number: tx.next_sequence(),
            reason: PendingReason::Queued,
            matching: 0,
        },
        binding: None,
        trouble: None,
        holds: BTreeMap::new(),
        power: ClaimPower::default(),
        reboots: Vec::new(),
        conditions: Vec::new(),
        metadata: ClaimMetadata::default(),
        notes: Vec::new(),
    })
}

/// Lets a paused claim go on under the name of its new owner. The host stays bound all along.
fn adopt(
    tx: &mut Tx<'_>,
    op: &CreateClaim,
    adopted: ClaimId,
    known: Option<Arc<Claim>>,
) -> ApplyResult {
    let mut claim = own(tx, adopted, op.project, None)?;
    if let Some(known) = known.filter(|known| known.id != adopted) {
        return Err(Error::already_exists("claim", &known.name));
    }
    if claim.name == op.name && claim.spec == op.spec {
        // The client lost its answer.
        return Ok(Reply::Claim(put(tx, claim)));
    }
    if !claim.spec.paused {
        let message = format!("claim \"{adopted}\" is not paused");
        return Err(Error::new(ErrorCode::ClaimNotPaused, message).object("claim", adopted));
    }
    check_not_over(&claim)?;
    check_change(&claim, &op.spec)?;
    check_name(&op.name)?;
    claim.name.clone_from(&op.name);
    LabelsUpdate::Replace(op.labels.clone()).apply(&mut claim.meta.labels)?;
    claim.note(tx.now, "Adopted", format!("under the name {}", op.name));
    rewrite(tx, claim, op.spec.clone())?;
    act(tx, adopted);
    shown(tx, adopted)
}

/// Changes the intent or the labels of a claim.
pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateClaim) -> ApplyResult {
    let mut claim = own(tx, op.id, op.project, op.epoch)?;
    let known = claim.meta.generation;
    check_generation("claim", &op.id.to_string(), known, op.expected)?;
    check_not_over(&claim)?;
    if let Some(labels) = &op.labels {
        LabelsUpdate::Replace(labels.clone()).apply(&mut claim.meta.labels)?;
    }
    let spec = op.spec.clone().unwrap_or_else(|| claim.spec.clone());
    if claim.spec.paused && spec.paused && spec != claim.spec {
        let message = format!("claim \"{}\" is paused", op.id);
        return Err(Error::new(ErrorCode::ClaimPaused, message).object("claim", op.id));
    }
    check_change(&claim, &spec)?;
    rewrite(tx, claim, spec)?;
    act(tx, op.id);
    shown(tx, op.id)
}

/// Writes a claim with another intent.
fn rewrite(tx: &mut Tx<'_>, mut claim: Claim, spec: ClaimSpec) -> CheckResult {
    let is_changed = claim.spec != spec;
    claim.spec = spec;
    if is_changed {
        claim.queue.class = class_of(&claim.spec)?;
        claim.power.attempts = 0;
        check_spec(tx, &claim)?;
        // Only a claim that takes its place in the queue anew can exceed a bound. A paused one has none.
        let stored = tx.get::<Claim>(&claim.id);
        let keeps_place = stored
            .is_some_and(|stored| stored.is_waiting() && stored.queue.class == claim.queue.class);
        if !keeps_place {
            check_budget(tx, &claim, false)?;
        }
        // The next attempt is with the new intent.
        claim.trouble = None;
    }
    let claim = tx.update(claim);
    put(tx, Claim::clone(&claim));
    Ok(())
}

fn check_not_over(claim: &Claim) -> CheckResult {
    if !matches!(claim.state, ClaimState::Releasing | ClaimState::Gone) {
        return Ok(());
    }
    let message = format!("claim \"{}\" is {}", claim.id, claim.state);
    Err(Error::new(ErrorCode::ClaimOver, message).object("claim", claim.id))
}

/// Refuses changes of what is installed: the image is taken away first, which wipes the host.
fn check_change(claim: &Claim, spec: &ClaimSpec) -> CheckResult {
    let is_installed = matches!(claim.state, ClaimState::Provisioning | ClaimState::Active);
    if !is_installed || spec.image.is_none() {
        return Ok(());
    }
    let old = &claim.spec;
    let changed = [
        ("image", old.image != spec.image),
        ("filesystem_layout", old.layout != spec.layout),
        ("hostname", old.hostname != spec.hostname),
        ("networks", old.networks != spec.networks),
        (
            "ssh_public_keys",
            old.ssh_public_keys != spec.ssh_public_keys,
        ),
        ("user_data", old.userdata != spec.userdata),
    ];
    let Some((field, _)) = changed.into_iter().find(|(_, is_changed)| *is_changed) else {
        return Ok(());
    };
    let message = format!(
        "claim \"{}\" has an installed system: spec.{field} cannot change now",
        claim.id
    );
    Err(Error::new(ErrorCode::ClaimInstalled, message).object("claim", claim.id))
}

/// Takes the steps that a new intent asks for.
pub(super) fn act(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(mut claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    if claim.spec.paused {
        return;
    }
    let is_removed = claim.spec.image.is_none();
    match claim.state {
        ClaimState::Pending => {
            bind::seek(tx, id);
        }
        ClaimState::Bound => provision::begin(tx, id),
        ClaimState::Provisioning | ClaimState::Active if is_removed => {
            enter(&mut claim, ClaimEvent::ImageRemoved, tx.now);
            claim.note(tx.now, "ImageRemoved", "its host is wiped");
            put(tx, claim);
            provision::free(tx, id);
        }
        ClaimState::Active => power::reconcile(tx, id),
        _ => {}
    }
}

/// Deletes a claim: its host is wiped before anybody else gets it. Idempotent.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteClaim) -> ApplyResult {
    let mut claim = own(tx, op.id, op.project, op.epoch)?;
    if !enter(&mut claim, ClaimEvent::Deleted, tx.now) {
        return Ok(Reply::Claim(put(tx, claim)));
    }
    claim.trouble = None;
    claim.note(tx.now, "Deleted", format!("by {}", tx.actor));
    let binding = claim.binding.clone();
    let claim = put(tx, claim);
    if let Some(binding) = binding {
        reserve(tx, &claim);
        provision::free(tx, op.id);
        settle::settle(tx, binding.machine);
    }
    shown(tx, op.id)
}

/// Reserves the host of a claim that ends for the next one of its project with the same key, and says
/// by how much it is wiped for it.
fn reserve(tx: &mut Tx<'_>, claim: &Claim) {
    let (Some(reuse), Some(binding)) = (&claim.spec.reuse, &claim.binding) else {
        return;
    };
    let pool = tx.get::<HostPool>(&binding.pool).cloned();
    let longest = pool.as_ref().map_or(0, |pool| pool.reuse_max_ms);
    let keep_ms = reuse.keep_ms.min(longest);
    let host = tx.get::<PoolHost>(&binding.machine);
    let Some(mut host) = host.map(|host| PoolHost::clone(host)).filter(|host| {
        let size = host.seen.size.as_ref();
        keep_ms > 0 && may_reserve(tx.tables(), claim.project, size)
    }) else {
        return;
    };
    let wipe = pool.and_then(|pool| pool.lowered(reuse.wipe));
    let machine = tx
        .get::<Machine>(&binding.machine)
        .filter(|_| wipe.is_some());
    host.reserved = Some(HostReservation {
        project: claim.project,
        key: reuse.key.clone(),
        until: tx.now.plus_ms(keep_ms),
        wipe,
        disks: machine
            .map(|machine| known_serials(machine))
            .unwrap_or_default(),
    });
    tx.save(host);
}

fn shown(tx: &Tx<'_>, id: ClaimId) -> ApplyResult {
    let claim = tx.tables().require::<Claim>(&id)?;
    Ok(Reply::Claim(Arc::clone(claim)))
}
