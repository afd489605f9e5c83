//! The rule of the label that chooses how a partition's switches connect the ports of a tenant.
//!
//! Asked before a change is proposed, not when the entry is applied: a rule there would need a
//! feature level, so that all nodes refuse the same entries.

use std::str::FromStr;

use proto_errors::Error;

use crate::catalog::entity::FabricMode;
use crate::meta::{Labels, LabelsUpdate, label};
use crate::reply::CheckResult;

/// Checks the mode in the labels that a partition gets.
///
/// # Errors
/// `InvalidField` if it is neither `static` nor `evpn`.
pub fn check_fabric(labels: &Labels) -> CheckResult {
    let text = labels.get(label::FABRIC);
    if text.is_none_or(|text| FabricMode::from_str(text).is_ok()) {
        return Ok(());
    }
    Err(Error::invalid(
        label::FABRIC,
        "must be \"static\" or \"evpn\"",
    ))
}

/// Checks the mode in a change of a partition's labels.
///
/// # Errors
/// As [`check_fabric`].
pub fn check_fabric_update(update: &LabelsUpdate) -> CheckResult {
    match update {
        LabelsUpdate::Replace(labels) | LabelsUpdate::Patch { update: labels, .. } => {
            check_fabric(labels)
        }
    }
}
