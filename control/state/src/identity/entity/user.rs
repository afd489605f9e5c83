//! Built-in users: who logs in where no provider knows the people.

use std::fmt;

use proto_types::{TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::blob;

/// Argon2id (version 1.3, one lane) of a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    /// Random salt.
    #[serde(with = "blob")]
    pub salt: Vec<u8>,
    /// The hash.
    #[serde(with = "blob")]
    pub hash: Vec<u8>,
    /// Memory cost, KiB.
    pub memory_kib: u32,
    /// Number of passes over the memory.
    pub passes: u32,
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(<redacted>)")
    }
}

/// A built-in user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The key: login of the user, and of its personal tenant.
    pub login: TenantId,
    /// Display name.
    pub name: String,
    /// Mail address. Empty means unknown.
    pub email: String,
    /// Hash of the password.
    pub password: PasswordHash,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which the password was last set.
    pub password_set_at: Timestamp,
    /// Time of the last login. `None` means never.
    #[serde(default)]
    pub logged_in_at: Option<Timestamp>,
}
