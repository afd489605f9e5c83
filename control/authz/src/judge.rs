//! The interface by which a decision asks the site policies.

use crate::Reach;

/// A rule that decided a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// `policy/rule`.
    pub rule: String,
    /// The policy's message for the caller. Empty means none.
    pub message: String,
}

/// A policy that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// Name of the policy.
    pub policy: String,
    /// The cause, for the caller. It contains no value of the request.
    pub reason: String,
}

/// Evaluates the site's policies for one call.
pub trait Judge {
    /// The first rule that refuses the call.
    ///
    /// # Errors
    /// A policy cannot be evaluated; the call is then refused.
    fn deny(&self) -> Result<Option<Ruling>, Unjudged>;

    /// The first rule that permits the call for callers of this reach.
    ///
    /// # Errors
    /// A policy cannot be evaluated; the table's refusal then stands.
    fn allow(&self, reach: Reach) -> Result<Option<Ruling>, Unjudged>;
}
