//! What an applied command did to the tables: for the disk, and for those who watch.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Kind, Record};

/// An object that is new, changed or gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Of which kind.
    pub kind: Kind,
    /// Its key as text; unique in its kind, and the key to store it under.
    pub key: String,
    /// The tables' revision of the command that changed it.
    pub revision: u64,
    /// What it was before; none when it is new. For those who watch: who could see it then and
    /// cannot now has to be told that it is gone.
    pub before: Option<Record>,
    /// What it is now; none when it is gone.
    pub record: Option<Record>,
}

/// Bytes that are not what they should be.
#[derive(Debug, thiserror::Error)]
#[error("a stored {kind} cannot be {what}: {reason}")]
pub struct CodecError {
    /// Kind of the object.
    pub kind: Kind,
    what: &'static str,
    reason: String,
}

pub(crate) fn encode<T: Serialize>(kind: Kind, value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes)
        .map(|()| bytes)
        .map_err(|e| CodecError {
            kind,
            what: "written",
            reason: e.to_string(),
        })
}

pub(crate) fn decode<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, CodecError> {
    ciborium::from_reader(bytes).map_err(|e| CodecError {
        kind,
        what: "read",
        reason: e.to_string(),
    })
}
