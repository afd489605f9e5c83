//! Resource class and traits of a machine.

use proto_errors::Error;

use crate::lease::read::{TenureAction, check_action};
use crate::machine::command::{ClassChange, SetMachineCapability, TraitsChange};
use crate::machine::entity::{Machine, TRAITS_MAX};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// Sets resource class and traits. A node allocation that holds the machine already keeps it.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetMachineCapability) -> ApplyResult {
    if let Some(project) = op.project {
        check_action(
            tx.tables(),
            op.machine,
            project,
            TenureAction::SetCapability,
        )?;
    }
    let mut machine: Machine = tx.require(&op.machine)?;
    match &op.resource_class {
        ClassChange::Keep => {}
        ClassChange::Clear => machine.capability.resource_class = None,
        ClassChange::Set(class) => machine.capability.resource_class = Some(class.clone()),
    }
    let traits = &mut machine.capability.traits;
    match &op.traits {
        None => {}
        Some(TraitsChange::Replace(all)) => traits.clone_from(all),
        Some(TraitsChange::Patch { add, remove }) => {
            traits.retain(|name| !remove.contains(name));
            traits.extend(add.iter().cloned());
        }
    }
    if traits.len() > TRAITS_MAX {
        let rule = format!("must be at most {TRAITS_MAX}: remove some");
        return Err(Error::invalid("traits", rule));
    }
    Ok(Reply::Machine(tx.update(machine)))
}
