//! A node that changes together with its owner, lessee and class.

use std::sync::Arc;

use proto_errors::Error;

use crate::lease::apply::{end, grant, owner};
use crate::lease::command::UpdateNode;
use crate::machine::apply::capability;
use crate::machine::entity::Machine;
use crate::node::apply::record;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Carries out the parts, all of them or none: a client that is refused has changed nothing.
pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateNode) -> ApplyResult {
    if op.machines().any(|machine| machine != op.machine) {
        return Err(Error::invalid("machine", "must be that of every part"));
    }
    // Before the parts: other hands end fields of the record, which counts a generation.
    if let Some(part) = &op.node {
        record::check_expected(tx.tables(), part)?;
    }
    if let Some(part) = &op.end {
        end::end(tx, part)?;
    }
    if let Some(part) = &op.owner {
        owner::set_owner(tx, part)?;
    }
    if let Some(part) = &op.grant {
        grant::grant(tx, part)?;
    }
    if let Some(part) = &op.capability {
        capability::set(tx, part)?;
    }
    if let Some(part) = &op.node {
        record::write(tx, part)?;
    }
    let machine = tx.tables().require::<Machine>(&op.machine)?;
    Ok(Reply::Machine(Arc::clone(machine)))
}
