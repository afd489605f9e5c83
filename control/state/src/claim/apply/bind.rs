//! Binding of a host to a claim, and its end. The host's row has the truth; the claim repeats it.

use proto_types::{ClaimId, MachineId};

use super::provision;
use super::verify::verify;
use super::write::put;
use crate::claim::entity::{Claim, ClaimBinding, ClaimPower, PendingReason};
use crate::claim::phase::{ClaimEvent, enter};
use crate::claim::read::{contest, survey};
use crate::machine::apply::orders::cancel_of_users;
use crate::machine::entity::Machine;
use crate::machine::read::obstacle;
use crate::pool::entity::{HostBinding, PoolHost};
use crate::tables::Tx;

/// Most searches for one claim in a command. Each but the last found that hosts of the index are
/// not ready, and took them out of it.
const SEARCHES_MAX: usize = 16;

/// Searches a host for a waiting claim, and binds it. A claim behind another one of its class keeps
/// waiting: what does not fit the first does not fit the second.
pub(super) fn seek(tx: &mut Tx<'_>, id: ClaimId) -> bool {
    let Some(claim) = tx.get::<Claim>(&id).filter(|claim| claim.is_waiting()) else {
        return false;
    };
    let head = tx
        .tables()
        .index()
        .claims
        .head(claim.project, &claim.queue.class);
    if head.is_some_and(|(_, _, head)| head != id) {
        wait(tx, id, PendingReason::BehindEarlierClaim, 0);
        return false;
    }
    for _ in 0..SEARCHES_MAX {
        let Some(claim) = tx.get::<Claim>(&id).cloned() else {
            return false;
        };
        let found = survey(tx.tables(), &claim, tx.now);
        for host in &found.unready {
            bench(tx, *host);
        }
        match found.host {
            Some(host) => return bind(tx, id, host),
            None if found.unready.is_empty() => {
                wait(tx, id, found.reason, found.matching);
                return false;
            }
            None => {}
        }
    }
    wait(tx, id, PendingReason::AllBusy, 0);
    false
}

/// Offers a free host to the claims that wait. `true` means that one took it.
pub(super) fn offer(tx: &mut Tx<'_>, id: MachineId) -> bool {
    let Some(host) = tx
        .get::<PoolHost>(&id)
        .filter(|host| host.is_open())
        .cloned()
    else {
        return false;
    };
    let Some(claim) = contest(tx.tables(), &host, tx.now) else {
        return false;
    };
    let machine = tx.get::<Machine>(&id).cloned();
    let is_ready = machine.is_some_and(|machine| obstacle(tx.tables(), &machine).is_none());
    if !is_ready {
        bench(tx, id);
        return false;
    }
    bind(tx, claim, id)
}

/// Takes a host out of the free ones: its machine is not ready. The tick looks at it again.
fn bench(tx: &mut Tx<'_>, id: MachineId) {
    if let Some(mut host) = tx.get::<PoolHost>(&id).map(|host| PoolHost::clone(host)) {
        host.seen.is_ready = false;
        tx.save(host);
    }
}

/// Writes why a claim waits.
fn wait(tx: &mut Tx<'_>, id: ClaimId, reason: PendingReason, matching: u32) {
    let Some(mut claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    if claim.queue.reason != reason {
        claim.note(tx.now, reason.as_str(), reason.text());
    }
    claim.queue.reason = reason;
    claim.queue.matching = matching;
    put(tx, claim);
}

/// Binds a host to a claim, and begins the installation if the claim has an image. `false` means
/// that one of the two is not free.
fn bind(tx: &mut Tx<'_>, id: ClaimId, machine: MachineId) -> bool {
    let claim = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim));
    let host = tx
        .get::<PoolHost>(&machine)
        .map(|host| PoolHost::clone(host));
    let (Some(mut claim), Some(mut host)) = (claim, host) else {
        return false;
    };
    let has_host = tx.tables().index().hosts.bound.contains_key(&id);
    if has_host || !host.is_open() || !enter(&mut claim, ClaimEvent::HostBound, tx.now) {
        return false;
    }
    host.epoch += 1;
    host.reserved = None;
    host.binding = Some(HostBinding {
        claim: id,
        project: claim.project,
        bound_at: tx.now,
        spread: claim.spec.spread.clone(),
        revoked_at: None,
    });
    claim.binding = Some(ClaimBinding {
        machine,
        pool: host.pool.clone(),
        epoch: host.epoch,
        bound_at: tx.now,
        selector: claim.spec.selector.clone(),
        allocation: None,
    });
    claim.power = ClaimPower::default();
    claim.trouble = None;
    claim.note(
        tx.now,
        "HostBound",
        format!("bound in epoch {}", host.epoch),
    );
    tx.save(host);
    put(tx, claim);
    provision::begin(tx, id);
    true
}

/// Ends the binding of a host. `quarantine` says why nobody may get it; `None` means that it is
/// clean, or will be. Orders of the claim that are still open are cancelled: they must not reach the
/// next one.
pub(super) fn unbind(tx: &mut Tx<'_>, id: MachineId, quarantine: Option<String>) {
    let Some(mut host) = tx.get::<PoolHost>(&id).map(|host| PoolHost::clone(host)) else {
        return;
    };
    cancel_of_users(tx, id);
    host.binding = None;
    if quarantine.is_some() {
        host.quarantine = quarantine;
        host.reserved = None;
    }
    // It may have come to the claim with data of its project.
    if host.light_wipe.is_some()
        && let Some(machine) = tx.get::<Machine>(&id).cloned()
    {
        verify(tx, &mut host, &machine);
    }
    tx.save(host);
}
