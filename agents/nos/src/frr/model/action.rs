//! Verdicts of filters.

use std::fmt;

/// Verdict of a filter's entry on a route that matches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The route passes.
    Permit,
    /// The route is dropped.
    Deny,
}

impl Action {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "permit" => Some(Self::Permit),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
        })
    }
}
