//! What rows say of rows of other resources: it has to be true when it is written.

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::identity::entity::Certificate;
use crate::machine::entity::Machine;
use crate::machine::read::hammer_may_run;
use crate::tables::Tx;

type Check = std::result::Result<(), Error>;

/// The allocation may have ended since the certificate was asked for, and so may the boot.
pub(crate) fn check_allocation(tx: &Tx<'_>, certificate: &Certificate) -> Check {
    if let (Some(id), None) = (&certificate.machine, certificate.allocation) {
        return check_hammer(tx, *id);
    }
    let allocation_of = |id: &MachineId| {
        tx.get::<Machine>(id)
            .and_then(|machine| machine.allocation.as_ref())
            .map(|a| a.id)
    };
    let current = certificate.machine.as_ref().and_then(allocation_of);
    if certificate.allocation.is_some() && certificate.allocation != current {
        return Err(Error::new(
            ErrorCode::MachineNotAllocated,
            format!("the allocation of \"{}\" is over", certificate.identity),
        ));
    }
    Ok(())
}

/// hammer has an identity only while it may run.
fn check_hammer(tx: &Tx<'_>, id: MachineId) -> Check {
    let machine = tx.tables().require::<Machine>(&id)?;
    if hammer_may_run(machine) {
        return Ok(());
    }
    let text = format!(
        "machine \"{id}\" is {}: hammer does not run on it now",
        machine.phase
    );
    Err(Error::new(ErrorCode::WrongPhase, text).object("machine", id))
}
