//! Free text in a configuration of FRR.

use std::fmt;

use super::name::WordError;

/// Description of a neighbour: 1 to 80 characters, words of letters, digits and `-_.:/@` with
/// one space between two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Description(String);

/// Regular expression over an AS path: 1 to 200 of the digits and `^$_.*+()[]-`.
///
/// FRR allows a few more; `?` asks its shell for help, and `|` filters output there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AsPathRegex(String);

/// Regular expression over the extended communities of a route: 1 to 200 letters, digits and
/// `^$_.*+()[]-:`. `_` is a space, the beginning or the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunityRegex(String);

impl Description {
    /// Checks a description.
    ///
    /// # Errors
    /// When it is empty or too long, has other characters, or two spaces in a row.
    pub fn new(text: &str) -> Result<Self, WordError> {
        let word = |w: &str| {
            !w.is_empty()
                && w.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.:/@".contains(&b))
        };
        let ok = text.len() <= 80 && text.split(' ').all(word);
        WordError::unless(ok, text, "a description: words of A-Z a-z 0-9 -_.:/@")?;
        Ok(Self(text.to_owned()))
    }
}

impl AsPathRegex {
    /// Checks an expression's characters; FRR checks the rest.
    ///
    /// # Errors
    /// When it is empty or too long, or has other characters.
    pub fn new(text: &str) -> Result<Self, WordError> {
        let ok = (1..=200).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || b"^$_.*+()[]-".contains(&b));
        WordError::unless(ok, text, "an expression of digits and ^$_.*+()[]-")?;
        Ok(Self(text.to_owned()))
    }
}

impl CommunityRegex {
    /// Checks an expression's characters; FRR checks the rest.
    ///
    /// # Errors
    /// When it is empty or too long, or has other characters.
    pub fn new(text: &str) -> Result<Self, WordError> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"^$_.*+()[]-:".contains(&b);
        let ok = (1..=200).contains(&text.len()) && text.bytes().all(is_allowed);
        WordError::unless(ok, text, "an expression of A-Z a-z 0-9 and ^$_.*+()[]-:")?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for AsPathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CommunityRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
