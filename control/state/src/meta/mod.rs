//! The head that objects share: labels, times, generation, and the optimistic lock on them.

mod labels;

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

pub use labels::*;

/// Head of every object that users can change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Labels.
    pub labels: Labels,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change of intent. Strictly increasing, so that it serves as the version of
    /// the optimistic lock.
    pub updated_at: Timestamp,
    /// Number of changes of intent, from 1. Observations do not count.
    pub generation: u64,
}

impl Meta {
    /// A head with labels only; `apply` fills in the rest.
    pub fn labelled(labels: Labels) -> Self {
        Self {
            labels,
            ..Self::default()
        }
    }
    pub(crate) fn create(&mut self, now: Timestamp) {
        self.created_at = now;
        self.updated_at = now;
        self.generation = 1;
    }
    pub(crate) fn touch(&mut self, now: Timestamp) {
        // Two changes in one millisecond, or a clock that went back, must not leave the lock of the
        // first one valid.
        self.updated_at = now.max(self.updated_at.plus_ms(1));
        self.generation += 1;
    }
}

/// Refuses the change of an object that has another generation than the caller read. `known` is the
/// object's, 0 if there is none; `expected` is the caller's, `None` for any.
///
/// # Errors
/// `Conflict`.
pub(crate) fn check_generation(
    kind: &str,
    key: &str,
    known: u64,
    expected: Option<u64>,
) -> Result<(), Error> {
    match expected {
        Some(expected) if expected != known => {
            let message = format!("{kind} \"{key}\" is of generation {known} (you saw {expected})");
            Err(Error::new(ErrorCode::Conflict, message).object(kind, key))
        }
        _ => Ok(()),
    }
}

/// The optimistic lock of an update (`UpdateMeta` of the contract).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    /// The object's `updated_at` must still be this.
    Client(Timestamp),
    /// No guard: the change applies to whatever is there.
    Server,
}

impl Lock {
    /// Refuses an update of an object that changed since the caller read it.
    ///
    /// # Errors
    /// `Conflict` if `updated_at` differs.
    pub(crate) fn check(self, kind: &str, key: &str, meta: &Meta) -> Result<(), Error> {
        match self {
            Self::Client(seen) if seen != meta.updated_at => Err(Error::new(
                ErrorCode::Conflict,
                format!(
                    "{kind} \"{key}\" was changed at {} (you saw {seen})",
                    meta.updated_at
                ),
            )
            .object(kind, key)),
            _ => Ok(()),
        }
    }
}
