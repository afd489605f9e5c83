//! Entries of AS-path access lists.

use super::action::Action;
use super::name::ObjectName;
use super::text::AsPathRegex;

/// Place of an entry: the list and the entry's number in it. The first entry that matches decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AsPathKey {
    /// Name of the list.
    pub list: ObjectName,
    /// Number of the entry, from 1.
    pub sequence: u32,
}

/// An entry of an AS-path access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsPathRule {
    /// Verdict on a path that matches.
    pub action: Action,
    /// The paths that match.
    pub regex: AsPathRegex,
}
