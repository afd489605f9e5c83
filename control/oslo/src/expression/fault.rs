//! Reasons why a check string is refused.

use std::fmt;

/// A reason why a check string is refused: the place, the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CheckFault {
    /// Character, from 1. `None` means the check string as a whole.
    pub at: Option<usize>,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl CheckFault {
    /// A fault of the check string as a whole.
    pub(crate) fn whole(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            at: None,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A fault at a character.
    pub(crate) fn at(at: usize, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            ..Self::whole(problem, remedy)
        }
    }
}

impl fmt::Display for CheckFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "at character {at}: ")?;
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}
