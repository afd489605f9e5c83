//! The list form of check strings, of old files: `[["role:admin"], ["rule:a", "rule:b"]]`.

use super::parser::{CHECKS_MAX, joined, too_many_checks};
use super::token::CHECK_BYTES_MAX;
use super::{CheckExpression, CheckFault, SimpleCheck};

/// Reads a list. The empty one permits everybody; one of empty lists alone permits nobody.
pub(super) fn read<'a>(
    alternatives: impl IntoIterator<Item = Vec<&'a str>>,
) -> Result<CheckExpression, CheckFault> {
    let mut outer = Vec::new();
    let mut checks = 0;
    let mut is_empty = true;
    for alternative in alternatives {
        is_empty = false;
        checks += alternative.len();
        if checks > CHECKS_MAX {
            return Err(too_many_checks());
        }
        if !alternative.is_empty() {
            let inner: Result<Vec<_>, _> = alternative.into_iter().map(check).collect();
            outer.push(joined(inner?, CheckExpression::All));
        }
    }
    Ok(match (is_empty, outer.is_empty()) {
        (true, _) => CheckExpression::Always,
        (false, true) => CheckExpression::Never,
        (false, false) => joined(outer, CheckExpression::Any),
    })
}

/// A check of a list has no operators: oslo.policy would read them as a part of the value.
fn check(text: &str) -> Result<CheckExpression, CheckFault> {
    if text.len() > CHECK_BYTES_MAX {
        return Err(CheckFault::whole(
            format!(
                "a check of its list has {} bytes, at most {CHECK_BYTES_MAX}",
                text.len()
            ),
            "shorten it",
        ));
    }
    let is_operator = |sign: char| sign.is_whitespace() || sign.is_control();
    if text.contains(is_operator) || text.starts_with('(') || text.ends_with(')') {
        return Err(CheckFault::whole(
            format!("{text:?} in its list is not one check"),
            "write operators and parentheses in a text instead of a list",
        ));
    }
    Ok(match text {
        "@" => CheckExpression::Always,
        "!" => CheckExpression::Never,
        _ => CheckExpression::Check(SimpleCheck::parse(text, 1)?),
    })
}
