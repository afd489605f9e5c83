//! Leases whose date comes near, and those whose date is reached: decided by the tick, with the
//! cluster's time.
//!
//! A date counts in a partition that is cut off too: it is no judgement of a silence, and the release
//! waits there for the agents like one that the lessee asks for.

use proto_errors::Error;
use proto_types::MachineId;

use crate::lease::apply::end::finish;
use crate::lease::apply::terms::write;
use crate::lease::entity::Lease;
use crate::lease::read::due_leases;
use crate::tables::Tx;

/// Most leases that one tick changes. More wait for the next one, a few seconds later: a thousand
/// leases may end on one day, and each end is a dozen writes of one log entry.
const LEASES_PER_TICK: usize = 256;

/// Warns of the leases whose end is near, and ends those that are over.
pub(crate) fn expire_leases(tx: &mut Tx<'_>) -> Result<(), Error> {
    let due = due_leases(tx.tables(), tx.now).take(LEASES_PER_TICK);
    let due: Vec<(MachineId, bool)> = due
        .map(|lease| (lease.machine, lease.is_over(tx.now)))
        .collect();
    for (machine, is_over) in due {
        if is_over {
            finish(tx, machine, "the lease reached its end")?;
        } else {
            let mut lease: Lease = tx.require(&machine)?;
            lease.warned_at = Some(tx.now);
            write(tx, lease)?;
        }
    }
    Ok(())
}
