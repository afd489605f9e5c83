//! The sets of rules of a policy, and the rules of a set that fired.

use strum::{IntoStaticStr, VariantArray};

/// A set of rules that a policy may define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Verb {
    /// Refuses calls.
    Deny,
    /// Permits calls of callers that may see the subject.
    Allow,
    /// Permits calls of callers for which the subject does not exist.
    AllowForeign,
}

impl Verb {
    /// Name of the set in Rego.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// A rule that fired, with its message for the caller. An empty message means none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fired {
    pub(crate) rule: String,
    pub(crate) message: String,
}
