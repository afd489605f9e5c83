use std::fmt;

use crate::printable;

/// A field of an object that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// List and name, or place, of the object: `cwnp egress/web`.
    pub object: String,
    /// Field of the object.
    pub field: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl Violation {
    /// A violation of an object that is not named yet.
    #[must_use]
    pub fn new(field: &str, problem: impl Into<String>, remedy: &str) -> Self {
        Self {
            object: String::new(),
            field: printable(field),
            problem: printable(&problem.into()),
            remedy: printable(remedy),
        }
    }

    /// The violation with its object.
    #[must_use]
    pub fn of(self, object: &str) -> Self {
        Self {
            object: printable(object),
            ..self
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            object,
            field,
            problem,
            remedy,
        } = self;
        write!(out, "{object}: {field}: {problem}; {remedy}")
    }
}
