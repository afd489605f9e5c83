//! Remarks of the compiler: parts of rules that permit nothing, though they are well formed.

use super::rule::RuleId;

/// A part of a rule that permits nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompileRemark {
    /// It refers to a rule that does not exist.
    UnknownRule { rule: RuleId, reference: String },
    /// It reads an attribute that no object has.
    UnknownAttribute { rule: RuleId, attribute: String },
    /// It compares the constant `None`, which equals nothing.
    NeverTrue { rule: RuleId, check: String },
}
