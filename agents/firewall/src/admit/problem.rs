use std::fmt;

use serde::Serialize;

use crate::config::printable;
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

/// A problem of an object before it is known which.
#[derive(Debug)]
pub(super) struct Fault {
    field: String,
    problem: String,
    remedy: String,
}

impl Fault {
    pub(super) fn new(field: &str, problem: &str, remedy: &str) -> Self {
        Self {
            field: printable(field),
            problem: printable(problem),
            remedy: printable(remedy),
        }
    }

    /// The same problem of a field that it does not name.
    pub(super) fn in_field(self, field: &str) -> Self {
        Self {
            field: printable(field),
            ..self
        }
    }

    pub(super) fn of(self, object: String) -> Problem {
        Problem {
            object,
            rule: None,
            field: self.field,
            problem: self.problem,
            remedy: self.remedy,
        }
    }

    pub(super) fn of_rule(self, id: &RuleId) -> Problem {
        let object = format!("{} {}", id.controller.name(), id.object);
        Problem {
            rule: Some(id.rule),
            ..self.of(object)
        }
    }
}
