//! The names of a list's parameters.

use crate::error::IronicError;
use crate::request::IronicCall;

/// Parameters of every list.
const OF_LISTS: [&str; 6] = [
    "limit", "marker", "sort_key", "sort_dir", "fields", "detail",
];

/// Refuses parameters other than those of every list and these: a filter that is not known would
/// otherwise be ignored, and the list would have too many rows.
///
/// # Errors
/// 400, which names the parameter.
pub(crate) fn check_parameters(call: &IronicCall<'_>, filters: &[&str]) -> Result<(), IronicError> {
    let names = call.query.iter().map(|(name, _)| name.as_str());
    check(names, filters)
}

fn check<'a>(
    mut names: impl Iterator<Item = &'a str>,
    filters: &[&str],
) -> Result<(), IronicError> {
    match names.find(|name| !OF_LISTS.contains(name) && !filters.contains(name)) {
        None => Ok(()),
        Some(other) => {
            let text = format!("Unexpected arguments: {other}");
            Err(IronicError::invalid(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parameters_are_named() {
        for (names, expected) in [
            (vec![], None),
            (vec!["limit", "owner", "detail"], None),
            (
                vec!["owner", "onwer"],
                Some("Unexpected arguments: onwer".to_owned()),
            ),
        ] {
            let refused = check(names.into_iter(), &["owner"]).err();
            assert_eq!(refused.map(|error| error.text), expected);
        }
    }
}
