//! The sets of rules of a policy, and the rules of a set that fired.

/// A set of rules that a policy may define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Refuses calls.
    Deny,
    /// Permits calls of callers that may see the subject.
    Allow,
    /// Permits calls of callers for which the subject does not exist.
    AllowForeign,
}

impl Verb {
    pub(crate) const ALL: [Self; 3] = [Self::Deny, Self::Allow, Self::AllowForeign];

    /// Name of the set in Rego.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::AllowForeign => "allow_foreign",
        }
    }
}

/// A rule that fired, with its message for the caller. An empty message means none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fired {
    pub(crate) rule: String,
    pub(crate) message: String,
}
