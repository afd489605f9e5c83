//! Commands about identities and their certificates.

use serde::{Deserialize, Serialize};

/// See [`Op::RevokeIdentity`](crate::Op::RevokeIdentity).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeIdentity {
    /// SPIFFE id.
    pub identity: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// See [`Op::RotateIdentity`](crate::Op::RotateIdentity).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RotateIdentity {
    /// SPIFFE id.
    pub identity: String,
}
