//! A setting that a duty cannot use.

use std::error::Error;

/// The cause of a [`SettingError`].
type SettingCause = Box<dyn Error + Send + Sync>;

/// A setting that cannot be used. The message names the field.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SettingError {
    /// The configuration key, for example `backup.keep`.
    pub field: String,
    /// The fault, and how to correct it.
    pub problem: String,
    /// The cause. `None` means that the value itself is the fault.
    #[source]
    pub cause: Option<SettingCause>,
}

impl SettingError {
    /// A value that is refused.
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
            cause: None,
        }
    }

    /// A value that cannot be used because of `cause`.
    pub(crate) fn caused(
        field: impl Into<String>,
        problem: impl Into<String>,
        cause: impl Into<SettingCause>,
    ) -> Self {
        Self {
            cause: Some(cause.into()),
            ..Self::new(field, problem)
        }
    }
}
