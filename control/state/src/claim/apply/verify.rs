//! Verification of the last wipe of a host.
//!
//! A host is offered only if every disk was wiped by at least as much as its pool asks for between two
//! projects. Less is enough while the host is kept for the project that had it, if the project and the
//! pool want it so. Once the project does not have it any more, the host is wiped again, in full, before
//! anybody else sees it.

use crate::claim::entity::{Claim, ClaimState};
use crate::machine::apply::rewipe::wipe_or_wait;
use crate::machine::apply::wipe::has_only_disks;
use crate::machine::entity::{Machine, Phase, WipeLevel, WipeRecord};
use crate::pool::entity::{HostPool, PoolHost};
use crate::tables::{Tables, Tx};

/// Strength of the wipe that is enough for the project that a host is kept for. `None` means that the
/// floor of the pool counts: nothing less was wished, the pool does not allow it, or there is a disk in
/// the host that the project did not have.
fn lowered(tables: &Tables, host: &PoolHost, machine: &Machine) -> Option<WipeLevel> {
    let reserved = host.reserved.as_ref()?;
    let pool = tables.get::<HostPool>(&host.pool)?;
    let level = pool.lowered(reserved.wipe)?;
    has_only_disks(machine, &reserved.disks).then_some(level)
}

/// Says how the machine of a host is wiped next.
pub(super) fn set_level(tx: &mut Tx<'_>, host: &PoolHost, machine: &Machine) {
    let level = lowered(tx.tables(), host, machine);
    if machine.wipe_level == level {
        return;
    }
    tx.save(Machine {
        wipe_level: level,
        ..machine.clone()
    });
}

/// The least by which the disks of a host must have been wiped now.
fn needed(tables: &Tables, host: &PoolHost, machine: &Machine, floor: WipeLevel) -> WipeLevel {
    if host.reserved.is_some() {
        return lowered(tables, host, machine).unwrap_or(floor);
    }
    let claim = host.binding.as_ref();
    let claim = claim.and_then(|binding| tables.get::<Claim>(&binding.claim));
    match claim.map(|claim| claim.state) {
        // It was kept for the claim, and is as the claim got it.
        Some(state) if state != ClaimState::Releasing => host.light_wipe.unwrap_or(floor),
        _ => floor,
    }
}

/// Holds the last wipe of a host against what is needed now. A host that was wiped by less is wiped again
/// if less was asked for, and is in quarantine otherwise.
pub(super) fn verify(tx: &mut Tx<'_>, host: &mut PoolHost, machine: &Machine) {
    if machine.dirty {
        host.clean_epoch = None;
        host.light_wipe = None;
        return;
    }
    let is_idle = machine.phase == Phase::Waiting && machine.allocation.is_none();
    let is_known = host.clean_epoch == Some(host.epoch) && host.light_wipe.is_none();
    if !is_idle || is_known || host.quarantine.is_some() {
        return;
    }
    let Some(floor) = tx.get::<HostPool>(&host.pool).map(|pool| pool.floor) else {
        return;
    };
    let needed = needed(tx.tables(), host, machine, floor);
    let last = machine.wipes.last();
    // No record means that there was no disk to wipe.
    let level = last.map_or(WipeLevel::Sanitize, WipeRecord::level);
    if level >= needed {
        host.clean_epoch = Some(host.epoch);
        host.light_wipe = (level < floor).then_some(level);
        return;
    }
    host.clean_epoch = None;
    host.light_wipe = None;
    let asked = last.and_then(|last| last.asked);
    if asked.is_some_and(|asked| asked < needed) {
        wipe_or_wait(tx, machine.clone());
        return;
    }
    host.quarantine = Some(format!(
        "its disks were wiped by {}, and the pool asks for {}",
        level.as_str(),
        needed.as_str()
    ));
}
