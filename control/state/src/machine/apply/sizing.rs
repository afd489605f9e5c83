//! Changes of sizes: machines that nobody has are matched again.

use proto_errors::Error;

use crate::catalog::apply::size::{create_size, delete_size, update_size};
use crate::catalog::command::{CreateSize, DeleteSize, UpdateSize};
use crate::machine::entity::Machine;
use crate::machine::read::match_size;
use crate::reply::Reply;
use crate::tables::Tx;

pub(crate) fn size_created(tx: &mut Tx<'_>, op: &CreateSize) -> Result<Reply, Error> {
    let size = create_size(tx, op)?;
    match_again(tx);
    Ok(size)
}

pub(crate) fn size_updated(tx: &mut Tx<'_>, op: &UpdateSize) -> Result<Reply, Error> {
    let size = update_size(tx, op)?;
    match_again(tx);
    Ok(size)
}

pub(crate) fn size_deleted(tx: &mut Tx<'_>, op: &DeleteSize) -> Result<Reply, Error> {
    let size = delete_size(tx, op)?;
    // Machines that two sizes matched have one now.
    match_again(tx);
    Ok(size)
}

/// Machines that nobody has take the size that matches them now.
fn match_again(tx: &mut Tx<'_>) {
    let free: Vec<_> = tx
        .tables()
        .all::<Machine>()
        .filter(|m| m.allocation.is_none() && !m.boot_id.is_empty())
        .filter_map(|m| {
            let size = match_size(tx.tables(), &m.hardware);
            (size != m.size).then(|| {
                let mut machine = Machine {
                    size,
                    ..Machine::clone(m)
                };
                crate::machine::apply::lifecycle::size_changed(&mut machine);
                machine
            })
        })
        .collect();
    for machine in free {
        tx.save(machine);
    }
}
