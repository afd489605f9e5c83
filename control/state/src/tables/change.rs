//! Changes: the effect of an applied command on the tables, for storage and for watchers.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Kind, Record};

/// An object that a command created, changed or deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Kind of the object.
    pub kind: Kind,
    /// The object's key as text: unique in its kind, and the key in storage.
    pub key: String,
    /// The tables' revision after the command that changed the object.
    pub revision: u64,
    /// The object before the command. `None` means that the command created it. Watchers need it:
    /// a caller that could read the object before and cannot now is told that it is deleted.
    pub before: Option<Record>,
    /// The object after the command. `None` means that the command deleted it.
    pub record: Option<Record>,
}

/// A stored object that cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
#[error("a stored {kind} cannot be {what}: {reason}")]
pub struct CodecError {
    /// Kind of the object.
    pub kind: Kind,
    what: &'static str,
    reason: String,
}

/// Encodes an object as CBOR.
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

/// Decodes an object from CBOR.
pub(crate) fn decode<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, CodecError> {
    ciborium::from_reader(bytes).map_err(|e| CodecError {
        kind,
        what: "read",
        reason: e.to_string(),
    })
}
