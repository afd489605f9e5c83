//! Checks of the names and the additional fields of node allocations.

use std::collections::BTreeMap;

use proto_errors::Error;
use uuid::Uuid;

use crate::allocation::entity::{EXTRA_MAX, NODE_ALLOCATION_NAME_MAX};
use crate::allocation::read::named_allocation;
use crate::machine::entity::MachinePool;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// Refuses a name that is none, or that another node allocation of the same owner has. Owners do not
/// learn the names that others use.
pub(super) fn check_name(tables: &Tables, pool: MachinePool, name: &str) -> CheckResult {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-._~".contains(sign);
    let fits = (1..=NODE_ALLOCATION_NAME_MAX).contains(&name.len()) && name.chars().all(is_sign);
    // A client that names an allocation means its id if the name looks like one.
    if !fits || Uuid::try_parse(name).is_ok() {
        let rule = format!(
            "must have 1 to {NODE_ALLOCATION_NAME_MAX} characters out of letters, digits, '-', '.', \
             '_' and '~', and be no UUID"
        );
        return Err(Error::invalid("name", rule));
    }
    match named_allocation(tables, pool, name) {
        Some(_) => Err(Error::already_exists("node-allocation", name)),
        None => Ok(()),
    }
}

/// Refuses too many additional fields.
pub(super) fn check_extra(extra: &BTreeMap<String, String>) -> CheckResult {
    if extra.len() <= EXTRA_MAX {
        return Ok(());
    }
    let rule = format!("must have at most {EXTRA_MAX} entries");
    Err(Error::invalid("extra", rule))
}
