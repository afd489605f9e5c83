//! Names of interfaces.

use std::fmt;

use super::name::{ObjectName, WordError};

/// Name of an interface: a letter and up to 14 letters, digits, `.`, `-` or `_`.
///
/// FRR tells an unnumbered neighbour from an address and from a peer group by its name alone, so
/// that a name which could be either ([`ObjectName::PREFIX`], a colon) is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(String);

impl InterfaceName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is too long, has other characters, or is one of a peer group of ours.
    pub fn new(name: &str) -> Result<Self, WordError> {
        let ok = name.len() <= 15
            && name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
            && !name.starts_with(ObjectName::PREFIX);
        WordError::unless(ok, name, "the name of an interface")?;
        Ok(Self(name.to_owned()))
    }

    /// The loopback of a Linux system: `lo`.
    #[must_use]
    pub fn loopback() -> Self {
        Self("lo".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
