//! Reasons why a policy file is refused.

use std::fmt;

use crate::expression::CheckFault;

/// A reason why a policy file is refused: the rule, the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PolicyFault {
    /// Name of the rule. `None` means the file as a whole.
    pub rule: Option<String>,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl PolicyFault {
    /// A fault of the file as a whole.
    pub(crate) fn of_file(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            rule: None,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A fault of one rule.
    pub(crate) fn of_rule(
        rule: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            rule: Some(rule.to_owned()),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A fault in the check string of a rule.
    pub(crate) fn of_check(rule: &str, fault: &CheckFault) -> Self {
        let problem = match fault.at {
            Some(at) => format!("at character {at}: {}", fault.problem),
            None => fault.problem.clone(),
        };
        Self::of_rule(rule, problem, fault.remedy.clone())
    }
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "rule {rule:?}: ")?,
            None => f.write_str("the file: ")?,
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}
