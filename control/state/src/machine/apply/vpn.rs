//! Members of the VPN.

use proto_errors::Error;

use crate::machine::command::{AllocateMachine, ForgetVpn, ReportVpn};
use crate::machine::entity::{AllocationType, Machine, VpnMember};
use crate::reply::Reply;
use crate::tables::Tx;

/// A firewall that was allocated just now keeps its way into the VPN, if it got one.
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

pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportVpn) -> Result<Reply, Error> {
    let mut member: VpnMember = tx.require(&op.allocation)?;
    member.connected = op.connected;
    member.ips.clone_from(&op.ips);
    if op.connected {
        // It is used up; nobody needs the secret any more.
        member.access.sealed_key.clear();
    }
    tx.save(member);
    Ok(Reply::None)
}

pub(crate) fn forget(tx: &mut Tx<'_>, op: &ForgetVpn) -> Result<Reply, Error> {
    // Whoever asked may have been told of an unknown outcome, and asks again.
    let _was_there = tx.delete::<VpnMember>(&op.allocation);
    Ok(Reply::None)
}
