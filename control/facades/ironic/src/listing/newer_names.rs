//! Names of fields that a microversion does not have yet.

use http::StatusCode;

use crate::error::IronicError;
use crate::request::IronicCall;
use crate::version::ApiVersion;

/// Parameters that name fields.
const OF_FIELDS: [&str; 2] = ["fields", "sort_key"];

/// Refuses a list, or the view of an object, that names a field which the microversion does not have:
/// as a filter, among `fields`, or as the sort key. `has` tells it of a field, and is `true` for names
/// that are none.
///
/// # Errors
/// 406, which names the field.
pub(crate) fn check_versions(
    call: &IronicCall<'_>,
    has: impl Fn(ApiVersion, &str) -> bool,
) -> Result<(), IronicError> {
    let filters = call.query.iter().map(|(name, _)| name.as_str());
    let texts = OF_FIELDS.iter().filter_map(|name| call.asked(name));
    let named = texts.flat_map(|text| text.split(',')).map(str::trim);
    check_names(filters.chain(named), call.version, has)
}

/// Refuses names of fields which the microversion does not have.
///
/// # Errors
/// 406, which names the field.
pub(crate) fn check_names<'a>(
    mut names: impl Iterator<Item = &'a str>,
    version: ApiVersion,
    has: impl Fn(ApiVersion, &str) -> bool,
) -> Result<(), IronicError> {
    let Some(newer) = names.find(|name| !has(version, name)) else {
        return Ok(());
    };
    let version = version.text();
    let text = format!("Field {newer} is not acceptable in version {version}");
    Err(IronicError::new(StatusCode::NOT_ACCEPTABLE, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_names_are_not_acceptable() {
        let has = |version: ApiVersion, name: &str| name != "shard" || version.has(82);
        for (names, version, is_accepted) in [
            (vec!["owner", "shard"], 82, true),
            (vec!["owner", "shard"], 81, false),
            (vec!["owner", "nonsense"], 81, true),
            (vec![], 1, true),
        ] {
            let checked = check_names(names.iter().copied(), ApiVersion::of(version), has);
            assert_eq!(checked.is_ok(), is_accepted, "{names:?} {version}");
        }
        let refused = check_names(["shard"].into_iter(), ApiVersion::of(80), has).unwrap_err();
        assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
    }
}
