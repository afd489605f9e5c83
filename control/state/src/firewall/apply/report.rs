//! Reports of firewalls.

use proto_errors::{Error, ErrorCode};

use crate::firewall::command::ReportFirewall;
use crate::firewall::entity::FirewallStatus;
use crate::firewall::read::firewall_allocation;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportFirewall) -> ApplyResult {
    let allocation = firewall_allocation(tx.tables(), op.machine);
    if allocation.is_none_or(|allocation| allocation.id != op.allocation) {
        let message = format!("machine \"{}\" is not that firewall any more", op.machine);
        return Err(Error::new(ErrorCode::MachineForeign, message));
    }
    tx.save(FirewallStatus {
        machine: op.machine,
        allocation: op.allocation,
        applied_term: op.applied_term,
        applied_generation: op.applied_generation,
        at: tx.now,
        applied_sets: op.applied_sets.clone(),
        refused_rules: op.refused_rules.clone(),
        error: op.error.clone(),
        agent_version: op.agent_version.clone(),
        routes: op.routes.clone(),
        update: op.update.clone(),
    });
    Ok(Reply::None)
}
