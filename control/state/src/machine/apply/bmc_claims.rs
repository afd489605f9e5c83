//! Claims of several BMCs to be that of one machine.
//!
//! The first BMC that an agent reads with a machine's UUID is believed. Another one that reports
//! the same UUID later is a claim: a second BMC, or the first one at another address. Only an
//! operator can tell which machine it would power off, so that all orders are held until then.

use proto_errors::Error;
use proto_types::Timestamp;

use crate::machine::command::{BmcReading, ConfirmBmc, KeepBmcAccess};
use crate::machine::entity::{Bmc, BmcClaim, Machine, bmc_host};
use crate::machine::read::{is_claim, is_old_claim};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Most claims kept beside the believed BMC. Further ones are dropped: one claim holds the orders
/// already.
const CLAIMS_MAX: usize = 4;

/// Notes a reading of another BMC than the believed one. `true` if it was one: the reading must
/// then change nothing else of the machine.
pub(crate) fn take(machine: &mut Machine, reading: &BmcReading, now: Timestamp) -> bool {
    if !is_claim(machine, reading) {
        // A reading of the believed BMC is the time to drop claims that were not repeated: a BMC
        // that was replaced or renumbered stops claiming by itself.
        machine.bmc_claims.retain(|claim| !is_old_claim(claim, now));
        return false;
    }
    let known = machine
        .bmc_claims
        .iter_mut()
        .find(|claim| claim.address == reading.address);
    if let Some(claim) = known {
        claim.seen_at = now;
        claim.mac.clone_from(&reading.mac);
    } else if machine.bmc_claims.len() < CLAIMS_MAX {
        machine.bmc_claims.push(BmcClaim {
            address: reading.address.clone(),
            mac: reading.mac.clone(),
            since: now,
            seen_at: now,
            rejected: false,
        });
    }
    true
}

/// The reason why orders of a machine are held; `None` means that they are not.
pub(crate) fn contest(machine: &Machine) -> Option<String> {
    if !machine.is_bmc_contested() {
        return None;
    }
    let claims = machine.bmc_claims.iter().filter(|claim| !claim.rejected);
    let believed = machine.bmc.iter().map(|bmc| bmc.address.as_str());
    let all = believed.chain(claims.map(|claim| claim.address.as_str()));
    let all: Vec<&str> = all.collect();
    Some(format!(
        "more than one BMC claims to be that of machine \"{}\": {}",
        machine.id,
        all.join(" and ")
    ))
}

/// Takes an operator's decision which BMC is the machine's. The others are rejected until they fall
/// silent.
pub(crate) fn confirm(tx: &mut Tx<'_>, op: &ConfirmBmc) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.machine)?;
    let is_wanted = |address: &str| bmc_host(address) == bmc_host(&op.address);
    let is_believed = machine
        .bmc
        .as_ref()
        .is_some_and(|bmc| is_wanted(&bmc.address));
    if !is_believed {
        let claimed = machine
            .bmc_claims
            .iter()
            .position(|claim| is_wanted(&claim.address));
        let at = claimed.ok_or_else(|| {
            let error = Error::not_found("BMC", &op.address);
            error.hint("see which BMCs claim the machine: metalmesh machine issues MACHINE")
        })?;
        let chosen = machine.bmc_claims.remove(at);
        let fresh = Bmc {
            address: chosen.address,
            mac: chosen.mac,
            power_state: "unknown".into(),
            updated_at: chosen.seen_at,
            ..Bmc::default()
        };
        // The old BMC goes among the rejected claims: it keeps reporting, and as an unknown one it
        // would contest the machine again.
        if let Some(old) = machine.bmc.replace(fresh) {
            machine.bmc_claims.push(BmcClaim {
                address: old.address,
                mac: old.mac,
                since: old.updated_at,
                seen_at: tx.now,
                rejected: false,
            });
        }
    }
    for claim in &mut machine.bmc_claims {
        claim.rejected = true;
    }
    Ok(Reply::Machine(tx.save(machine)))
}

/// Stores how agents of the published stack log in at the machine's BMC.
pub(crate) fn keep_access(tx: &mut Tx<'_>, op: &KeepBmcAccess) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.machine)?;
    machine.bmc_access = Some(op.access.clone());
    tx.save(machine);
    Ok(Reply::None)
}
