//! Checks and updates of fields that many rows share.

use proto_errors::{Error, ErrorCode};
use proto_types::{is_description, is_name};
use uuid::Uuid;

use crate::reply::CheckResult;

/// Refuses a shown name outside of its bounds.
pub(crate) fn check_name(name: &str) -> CheckResult {
    if is_name(name) {
        Ok(())
    } else {
        Err(Error::invalid("name", "must have 2 to 128 characters"))
    }
}

/// Refuses a name that cannot stand in a URL as it is, or that looks like an id: a client that names an
/// object means its id then.
pub(crate) fn check_url_name(field: &str, name: &str, len_max: usize) -> CheckResult {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-._~".contains(sign);
    let fits = (1..=len_max).contains(&name.len()) && name.chars().all(is_sign);
    if fits && Uuid::try_parse(name).is_err() {
        return Ok(());
    }
    let rule = format!(
        "must have 1 to {len_max} characters out of letters, digits, '-', '.', '_' and '~', and be no \
         UUID"
    );
    Err(Error::invalid(field, rule))
}

/// Refuses a description beyond its bound.
pub(crate) fn check_description(text: &str) -> CheckResult {
    if is_description(text) {
        Ok(())
    } else {
        Err(Error::invalid(
            "description",
            "must have at most 256 characters",
        ))
    }
}

/// Sets a field if the update has a value for it.
pub(crate) fn set<T: Clone>(to: &mut T, from: Option<&T>) {
    if let Some(from) = from {
        to.clone_from(from);
    }
}

/// The error `StillInUse`, which names one row that refers to the object.
pub(crate) fn in_use(kind: &str, key: &str, by_kind: &str, by: &str) -> Error {
    Error::new(
        ErrorCode::StillInUse,
        format!("{kind} \"{key}\" still has {by_kind} \"{by}\""),
    )
    .object(kind, key)
    .hint(format!("delete the {by_kind} first"))
}
