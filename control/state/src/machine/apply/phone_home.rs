//! The call of the installed system, and its effect on the phase.

use proto_errors::{Error, ErrorCode};

use crate::levels::{TENANT_PORTS, feature_level};
use crate::machine::apply::boots;
use crate::machine::apply::events::{INSTALLED, record};
use crate::machine::apply::ports::{
    first_without_tenant, lacking_reason, lacks_port, missing_reason,
};
use crate::machine::command::PhoneHome;
use crate::machine::entity::{EventKind, Machine};
use crate::machine::phase::{PhaseEvent, enter, transition_of};
use crate::reply::{ApplyResult, Reply};
use crate::tables::{Tables, Tx};

/// Takes a call of the installed system.
pub(crate) fn phone_home(tx: &mut Tx<'_>, op: &PhoneHome) -> ApplyResult {
    let mut machine: Machine = tx.require(&op.id)?;
    let allocation = machine
        .allocation
        .as_ref()
        .filter(|a| a.project == op.project);
    let Some(allocation) = allocation else {
        return Err(Error::new(
            ErrorCode::MachineForeign,
            format!(
                "project \"{}\" does not have machine \"{}\"",
                op.project, op.id
            ),
        )
        .object("machine", op.id));
    };
    if allocation.install.installed_at.is_none() {
        return Err(Error::new(
            ErrorCode::WrongPhase,
            format!("machine \"{}\" is not installed", op.id),
        )
        .object("machine", op.id));
    }
    let log = record(tx, op.id, EventKind::PhonedHome, &op.message, op.time);
    // A running machine calls again and again: only the first call changes the phase.
    let (event, reason) = first_call(tx.tables(), &machine);
    if transition_of(&machine, event).is_some() {
        enter(&mut machine, event, tx.now, reason);
        tx.save(machine);
        boots::end(tx, op.id, INSTALLED);
    } else if lacks_port(&machine) {
        machine.reason = lacking_reason(tx.tables(), &machine);
        tx.save(machine);
    }
    Ok(Reply::EventLog(log))
}

/// The event of a first call, with the reason of the phase after it: the machine runs once every
/// switch has reported its port in the tenant's segment.
fn first_call(tables: &Tables, machine: &Machine) -> (PhaseEvent, String) {
    let waits = feature_level(tables) >= TENANT_PORTS;
    match first_without_tenant(tables, machine).filter(|_| waits) {
        Some(link) => (PhaseEvent::PhonedHomeEarly, missing_reason(machine, link)),
        None => (PhaseEvent::PhonedHome, String::new()),
    }
}
