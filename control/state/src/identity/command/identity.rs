//! Commands about identities and their certificates.

use serde::{Deserialize, Serialize};

/// See [`Op::RevokeIdentity`](crate::Op::RevokeIdentity).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeIdentity {
    /// SPIFFE id of the identity.
    pub identity: String,
    /// Reason for people. Empty if none is given.
    #[serde(default)]
    pub reason: String,
}

/// See [`Op::RotateIdentity`](crate::Op::RotateIdentity).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RotateIdentity {
    /// SPIFFE id of the identity.
    pub identity: String,
}
