//! Idempotency keys of clients: a repeated request gets the same allocation.

use std::fmt;

use proto_types::{AllocationId, Digest, MachineId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// Result of a request with an idempotency key: the same key and request get the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Project of the request.
    pub project: ProjectId,
    /// The client's key.
    pub key: String,
    /// SHA-256 of the request.
    pub request: Digest,
    /// Machine that it got.
    pub machine: MachineId,
    /// Allocation that it got.
    pub allocation: AllocationId,
    /// Time after which the key is forgotten.
    pub expires_at: Timestamp,
}

/// Key of an [`Idempotency`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// Project of the request.
    pub project: ProjectId,
    /// The client's key.
    pub key: String,
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.key)
    }
}
