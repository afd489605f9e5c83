use std::fmt;

use proto_firewall::Violation;
use serde::Serialize;

use crate::rule::RuleId;

/// An object that is wrong. None of its rules is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Controller and name of the object.
    pub object: String,
    /// Number of the rule in the object, if the object has rules.
    pub rule: Option<usize>,
    /// Field of the object.
    pub field: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.object)?;
        if let Some(rule) = self.rule {
            write!(out, " rule {rule}")?;
        }
        write!(out, ": {}: {}; {}", self.field, self.problem, self.remedy)
    }
}

impl Problem {
    /// A problem of an object that has no rule of its own, or none yet.
    pub(super) fn new(object: impl Into<String>, violation: Violation) -> Self {
        Self {
            object: object.into(),
            rule: None,
            field: violation.field,
            problem: violation.problem,
            remedy: violation.remedy,
        }
    }

    /// A problem of a rule.
    pub(super) fn of_rule(id: &RuleId, violation: Violation) -> Self {
        let object = format!("{} {}", id.controller.name(), id.object);
        Self {
            rule: Some(id.rule),
            ..Self::new(object, violation)
        }
    }
}
