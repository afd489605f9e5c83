//! Levels of findings, and the bounds that grade a value.

use std::fmt;

use strum::IntoStaticStr;

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub(super) enum FindingLevel {
    /// No problem.
    Ok,
    /// Works now, but needs attention.
    Warn,
    /// Does not work, or will not work when it is needed.
    Fail,
}

impl FindingLevel {
    /// Exit code of the program if no finding is worse.
    pub(super) const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warn => 1,
            Self::Fail => 2,
        }
    }
}

/// Grades a value that should not be small: below `fail` is a failure, below `warn` a warning.
pub(super) fn low<T: PartialOrd>(value: T, warn: T, fail: T) -> FindingLevel {
    match value {
        value if value < fail => FindingLevel::Fail,
        value if value < warn => FindingLevel::Warn,
        _ => FindingLevel::Ok,
    }
}

/// Grades a value that should not be large: from `fail` on a failure, from `warn` on a warning.
pub(super) fn high<T: PartialOrd>(value: T, warn: T, fail: T) -> FindingLevel {
    match value {
        value if value >= fail => FindingLevel::Fail,
        value if value >= warn => FindingLevel::Warn,
        _ => FindingLevel::Ok,
    }
}

impl fmt::Display for FindingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.into())
    }
}
