//! Nonces that machines return from their BMC: ordered with the boot ticket, spent at the join.

use proto_errors::Error;
use proto_types::{Digest, MachineId, Timestamp};

use crate::machine::apply::orders::order_nonce;
use crate::machine::entity::{BmcOrder, Machine};
use crate::machine::read::Nonce;
use crate::tables::Tx;

/// Orders a nonce into the machine's BMC if its partition demands one and the last nonce does not
/// outlive the ticket.
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
    // Before anything is taken: a stranger that shows a wrong nonce must not spend the right one.
    nonce.judge(shown, tx.now)?;
    // Taken out of the order, so that a copy of the nonce cannot join a second time.
    let spent = nonce.order.filter(|_| nonce.is_demanded).cloned();
    if let Some(order) = spent {
        tx.save(BmcOrder {
            nonce: None,
            ..order
        });
    }
    Ok(())
}
