//! Members of the VPN.

use crate::machine::command::{AllocateMachine, ForgetVpn, ReportVpn};
use crate::machine::entity::{AllocationType, Machine, VpnMember};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Stores the VPN access of a firewall that was just allocated, if it got one.
pub(crate) fn admit(tx: &mut Tx<'_>, op: &AllocateMachine, machine: &Machine) {
    let Some(access) = op.vpn.as_ref() else {
        return;
    };
    if op.kind == AllocationType::Firewall {
        tx.save(VpnMember {
            allocation: op.id,
            machine: machine.id,
            project: op.project,
            access: access.clone(),
            connected: false,
            ips: Vec::new(),
        });
    }
}

/// Takes what the VPN reports on a member's node.
pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportVpn) -> ApplyResult {
    let mut member: VpnMember = tx.require(&op.allocation)?;
    member.connected = op.connected;
    member.ips.clone_from(&op.ips);
    if op.connected {
        // The key is good for one node and used up: a secret that nobody needs is not kept.
        member.access.sealed_key.clear();
    }
    tx.save(member);
    Ok(Reply::None)
}

/// Deletes a member whose node and key are gone from the VPN.
pub(crate) fn forget(tx: &mut Tx<'_>, op: &ForgetVpn) -> ApplyResult {
    // A missing member is a success: the caller may have lost the answer of its first call.
    let _was_there = tx.delete::<VpnMember>(&op.allocation);
    Ok(Reply::None)
}
