//! Fields that microversions introduced.

use crate::version::ApiVersion;

/// Fields that are newer than the oldest shape, with the microversion `1.N` that introduced them.
pub(super) type NewerFields = [(&'static str, u16)];

/// `true` if objects have the field in this microversion, or in all of them.
pub(super) fn has_field(newer: &NewerFields, version: ApiVersion, name: &str) -> bool {
    let found = newer.iter().find(|(field, _)| *field == name);
    found.is_none_or(|(_, since)| version.has(*since))
}
