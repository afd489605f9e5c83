//! The outcome of one check of the host.

use serde_json::{Value, json};

use crate::args::SetupCheck;

/// How a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FindingGrade {
    /// As it should be.
    Ok,
    /// The node works, with a risk that the operator should know.
    Warn,
    /// The node would not work. Nothing is written unless the check is accepted.
    Fail,
}

impl FindingGrade {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// A finding: the measured object, the measured value with its rule, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetupFinding {
    pub(super) check: SetupCheck,
    pub(super) grade: FindingGrade,
    /// The object, for example a field of the configuration.
    pub(super) object: String,
    /// The value beside its rule.
    pub(super) found: String,
    /// The remedy. Empty means that there is nothing to do.
    pub(super) remedy: String,
}

impl SetupFinding {
    pub(super) fn ok(check: SetupCheck, object: impl Into<String>, found: String) -> Self {
        Self {
            check,
            grade: FindingGrade::Ok,
            object: object.into(),
            found,
            remedy: String::new(),
        }
    }

    /// The same finding as a warning with its remedy.
    pub(super) fn warn(self, remedy: impl Into<String>) -> Self {
        Self {
            grade: FindingGrade::Warn,
            remedy: remedy.into(),
            ..self
        }
    }

    /// The same finding as a refusal with its remedy.
    pub(super) fn fail(self, remedy: impl Into<String>) -> Self {
        Self {
            grade: FindingGrade::Fail,
            ..self.warn(remedy)
        }
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let (grade, object, found) = (self.grade.name(), &self.object, &self.found);
        let remedy = match self.remedy.as_str() {
            "" => String::new(),
            remedy => format!("; {remedy}"),
        };
        format!("  {grade:<4}  {object}: {found}{remedy}")
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "check": self.check.name(),
            "grade": self.grade.name().to_ascii_lowercase(),
            "object": self.object,
            "found": self.found,
            "remedy": self.remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_object_rule_and_remedy() {
        let found = "127.0.0.1:4443 is in use".to_owned();
        let finding = SetupFinding::ok(SetupCheck::Addresses, "api.listen", found);
        assert_eq!(
            finding.line(),
            "  ok    api.listen: 127.0.0.1:4443 is in use"
        );
        let failed = finding.fail("choose another address");
        assert_eq!(
            failed.line(),
            "  FAIL  api.listen: 127.0.0.1:4443 is in use; choose another address"
        );
        assert_eq!(failed.json()["grade"], "fail");
        assert_eq!(failed.json()["check"], "addresses");
    }
}
