//! Changes of sizes, after which free machines are matched again.

use crate::catalog::apply::size::{create_size, delete_size, update_size};
use crate::catalog::command::{CreateSize, DeleteSize, UpdateSize};
use crate::machine::entity::Machine;
use crate::machine::read::match_size;
use crate::reply::ApplyResult;
use crate::tables::Tx;

/// Creates a size.
pub(crate) fn size_created(tx: &mut Tx<'_>, op: &CreateSize) -> ApplyResult {
    let size = create_size(tx, op)?;
    match_again(tx);
    Ok(size)
}

/// Changes a size.
pub(crate) fn size_updated(tx: &mut Tx<'_>, op: &UpdateSize) -> ApplyResult {
    let size = update_size(tx, op)?;
    match_again(tx);
    Ok(size)
}

/// Deletes a size.
pub(crate) fn size_deleted(tx: &mut Tx<'_>, op: &DeleteSize) -> ApplyResult {
    let size = delete_size(tx, op)?;
    // A machine that two sizes matched had none: with one of them gone, it has the other.
    match_again(tx);
    Ok(size)
}

/// Gives each free machine the size that matches it now. Machines that never registered are left
/// out: their hardware is unknown.
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
