//! What a machine returns from its BMC: ordered with its ticket, spent when it joins.

use proto_errors::Error;
use proto_types::{Digest, MachineId, Timestamp};

use crate::machine::apply::orders::order_nonce;
use crate::machine::entity::{BmcOrder, Machine};
use crate::machine::read::Nonce;
use crate::tables::Tx;

/// A machine whose partition demands it gets a nonce into its BMC, unless there is one that is
/// good for as long as its ticket.
pub(crate) fn prepare(tx: &mut Tx<'_>, machine: &Machine, until: Timestamp) -> Result<(), Error> {
    if Nonce::of(tx.tables(), machine.id).is_wanted(until) {
        order_nonce(tx, machine)?;
    }
    Ok(())
}

/// Spends the machine's nonce, if its partition demands one.
pub(crate) fn redeem(
    tx: &mut Tx<'_>,
    machine: MachineId,
    shown: Option<&Digest>,
) -> Result<(), Error> {
    let nonce = Nonce::of(tx.tables(), machine);
    nonce.judge(shown, tx.now)?;
    let spent = nonce.order.filter(|_| nonce.is_demanded).cloned();
    if let Some(order) = spent {
        tx.save(BmcOrder {
            nonce: None,
            ..order
        });
    }
    Ok(())
}
