//! Check strings as tokens.

use super::CheckFault;

/// Bytes that one check string may have. The longest default of Ironic has 334.
pub const CHECK_BYTES_MAX: usize = 8 << 10;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckToken<'a> {
    Open,
    Close,
    And,
    Or,
    Not,
    /// A check, `@` or `!`.
    Word(&'a str),
}

/// A token and the character where it begins, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedToken<'a> {
    pub(super) token: CheckToken<'a>,
    pub(super) at: usize,
}

/// Splits a check string at white space; parentheses at the ends of a part are tokens of their own,
/// those inside of it belong to it, as in `%(node.owner)s`.
pub(super) fn tokens(text: &str) -> Result<Vec<PlacedToken<'_>>, CheckFault> {
    if text.len() > CHECK_BYTES_MAX {
        return Err(CheckFault::whole(
            format!("it has {} bytes, at most {CHECK_BYTES_MAX}", text.len()),
            "split it into rules, and refer to them by rule:NAME",
        ));
    }
    let mut found = Vec::new();
    let mut rest = text;
    let mut at = 1;
    while !rest.is_empty() {
        let word = rest.trim_start();
        at += chars(rest) - chars(word);
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        let (part, behind) = word.split_at(end);
        split_part(part, at, &mut found)?;
        at += chars(part);
        rest = behind;
    }
    Ok(found)
}

fn split_part<'a>(
    part: &'a str,
    at: usize,
    found: &mut Vec<PlacedToken<'a>>,
) -> Result<(), CheckFault> {
    let inner = part.trim_start_matches('(');
    let opened = part.len() - inner.len();
    let clean = inner.trim_end_matches(')');
    let mut push = |token, at| found.push(PlacedToken { token, at });
    for place in 0..opened {
        push(CheckToken::Open, at + place);
    }
    let at = at + opened;
    if let Some(control) = clean.chars().find(|sign| sign.is_control()) {
        return Err(CheckFault::at(
            at,
            format!("it has the control character {}", control.escape_unicode()),
            "remove it",
        ));
    }
    if !clean.is_empty() {
        push(word(clean), at);
    }
    let closing = at + chars(clean);
    for place in 0..inner.len() - clean.len() {
        push(CheckToken::Close, closing + place);
    }
    Ok(())
}

/// Operators are read in any case, everything else as it is.
fn word(text: &str) -> CheckToken<'_> {
    for (name, token) in [
        ("and", CheckToken::And),
        ("or", CheckToken::Or),
        ("not", CheckToken::Not),
    ] {
        if text.eq_ignore_ascii_case(name) {
            return token;
        }
    }
    CheckToken::Word(text)
}

fn chars(text: &str) -> usize {
    text.chars().count()
}
