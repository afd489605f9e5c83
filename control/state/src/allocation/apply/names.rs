//! Checks of the names and the additional fields of node allocations.

use std::collections::BTreeMap;

use proto_errors::Error;

use crate::allocation::entity::{EXTRA_BYTES_MAX, EXTRA_MAX, NODE_ALLOCATION_NAME_MAX};
use crate::allocation::read::named_allocation;
use crate::fields::check_url_name;
use crate::machine::entity::MachinePool;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Refuses a name that is none, or that another node allocation of the same owner has. Owners do not
/// learn the names that others use.
pub(super) fn check_name(tables: &Tables, pool: MachinePool, name: &str) -> CheckResult {
    check_url_name("name", name, NODE_ALLOCATION_NAME_MAX)?;
    match named_allocation(tables, pool, name) {
        Some(_) => Err(Error::already_exists("node-allocation", name)),
        None => Ok(()),
    }
}

/// Refuses additional fields that are too many or too long together.
pub(super) fn check_extra(extra: &BTreeMap<String, String>) -> CheckResult {
    if extra.len() > EXTRA_MAX {
        let rule = format!("must have at most {EXTRA_MAX} entries");
        return Err(Error::invalid("extra", rule));
    }
    let bytes = extra.iter().map(|(name, value)| name.len() + value.len());
    if bytes.sum::<usize>() > EXTRA_BYTES_MAX {
        let rule = format!("must have at most {EXTRA_BYTES_MAX} bytes");
        return Err(Error::invalid("extra", rule));
    }
    Ok(())
}
