//! The error catalogue: every error that a caller can see has a number, a kind, a title and a hint.
//!
//! An [`Error`] names the object, the problem and the remedy. Internal causes go to the log. Kinds
//! map one to one to the status codes of gRPC and Connect; that mapping is at each edge.
//!
//! Invariants:
//! - each code has its own number, which never gets another meaning;
//! - the kind follows from the code, so the same error has the same status code at every edge;
//! - an error has no source: nothing internal is sent to the caller;
//! - each issue of a machine names a command that helps, and its page in `docs` is the catalogue.

mod catalogue;
mod issues;

use std::fmt;

pub use catalogue::ErrorCode;
pub use issues::{IssueCode, IssueSeverity};
use serde::{Deserialize, Serialize};

/// The kind of an error, the part that programs act upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is not valid, whatever the state is.
    InvalidArgument,
    /// The object does not exist, or the caller may not see it.
    NotFound,
    /// An object with this id exists already.
    AlreadyExists,
    /// The object is not in a state that allows it.
    FailedPrecondition,
    /// The object was changed meanwhile: the caller reads it again and retries.
    Aborted,
    /// A pool or quota is used up.
    ResourceExhausted,
    /// The caller is authenticated but not authorised.
    PermissionDenied,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The service cannot answer now: the caller retries later.
    Unavailable,
    /// The deadline passed.
    DeadlineExceeded,
    /// The method is not implemented.
    Unimplemented,
    /// A failure inside control; the cause is in its log.
    Internal,
}

/// An error as the caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Entry in the catalogue.
    pub code: ErrorCode,
    /// Object, field and rule: `machine "m-42" is already allocated`.
    pub message: String,
    /// The object as `kind/key`. Empty means that the error is not about an object.
    #[serde(default)]
    pub object: String,
    /// The remedy. Empty means there is none.
    #[serde(default)]
    pub hint: String,
}

impl Error {
    /// An error with the hint of the catalogue.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            object: String::new(),
            hint: code.hint().into(),
        }
    }
    /// Names the object, `kind/key`.
    #[must_use]
    pub fn object(mut self, kind: &str, key: impl fmt::Display) -> Self {
        self.object = format!("{kind}/{key}");
        self
    }
    /// Replaces the hint of the catalogue by a more exact one.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
    /// `kind "key" was not found`.
    pub fn not_found(kind: &str, key: impl fmt::Display) -> Self {
        Self::new(
            ErrorCode::NotFound,
            format!("{kind} \"{key}\" was not found"),
        )
        .object(kind, key)
    }
    /// `kind "key" exists already`.
    pub fn already_exists(kind: &str, key: impl fmt::Display) -> Self {
        Self::new(
            ErrorCode::AlreadyExists,
            format!("{kind} \"{key}\" exists already"),
        )
        .object(kind, key)
    }
    /// `field rule`: a field of the request breaks its rule.
    pub fn invalid(field: &str, rule: impl fmt::Display) -> Self {
        Self::new(ErrorCode::InvalidField, format!("{field} {rule}"))
    }
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.code.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.message)?;
        if self.hint.is_empty() {
            Ok(())
        } else {
            write!(f, "; {}", self.hint)
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_titles_are_there() {
        let mut seen = std::collections::BTreeSet::new();
        for code in ErrorCode::ALL {
            assert!(seen.insert(code.number()), "{code} twice");
            assert!(!code.title().is_empty());
        }
    }

    #[test]
    fn display_says_what_and_what_to_do() {
        let error = Error::new(
            ErrorCode::MachineAllocated,
            "machine \"m-42\" is already allocated",
        )
        .hint("free it first: metalmesh machine free m-42");
        assert_eq!(
            error.to_string(),
            "MM-1201 machine \"m-42\" is already allocated; \
             free it first: metalmesh machine free m-42"
        );
    }
}
