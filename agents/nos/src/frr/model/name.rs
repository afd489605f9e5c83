//! Names of lists, route-maps and peer groups.

use std::fmt;

use thiserror::Error;

/// Name of a prefix list, an AS-path list, a route-map or a peer group of ours: [`Self::PREFIX`]
/// and 1 to 60 letters, digits, `-` or `_`.
///
/// The prefix is what tells our objects from an operator's: an object with another name is
/// foreign, and never changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

/// A word that cannot stand in a configuration of FRR.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{word:?} is not {expected}")]
pub struct WordError {
    /// The refused word.
    pub word: String,
    /// Description of an acceptable one.
    pub expected: &'static str,
}

impl ObjectName {
    /// Start of every name of ours.
    pub const PREFIX: &str = "MM-";

    /// Checks a name.
    ///
    /// # Errors
    /// When it lacks the prefix, or has another length or other characters.
    pub fn new(name: &str) -> Result<Self, WordError> {
        let rest = name.strip_prefix(Self::PREFIX).unwrap_or("");
        let ok = (1..=60).contains(&rest.len())
            && rest
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        WordError::unless(
            ok,
            name,
            "a name of ours: MM- and 1 to 60 of A-Z a-z 0-9 - _",
        )?;
        Ok(Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl WordError {
    pub(super) fn unless(ok: bool, word: &str, expected: &'static str) -> Result<(), Self> {
        if ok {
            return Ok(());
        }
        Err(Self {
            word: word.to_owned(),
            expected,
        })
    }
}
