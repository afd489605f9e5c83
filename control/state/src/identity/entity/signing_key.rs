//! Keys that sign tokens.

use std::fmt;

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::blob;

/// A key that signs tokens: sealed before it comes here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    /// The key: `kid` of the tokens.
    pub id: String,
    /// Sealed private key; opaque here.
    #[serde(with = "blob")]
    pub sealed_key: Vec<u8>,
    /// Public key, SubjectPublicKeyInfo DER.
    #[serde(with = "blob")]
    pub public_key: Vec<u8>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time from which tokens that it signed are refused.
    pub not_after: Timestamp,
    /// `true` if the key verifies tokens and no longer signs.
    #[serde(default)]
    pub retired: bool,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .field("sealed_key", &"<redacted>")
            .field("not_after", &self.not_after)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}
