//! Built-in users: who logs in where no provider knows the people.

use std::fmt;

use proto_types::{TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::blob;

/// Argon2id (version 1.3, one lane) of a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    /// Random.
    #[serde(with = "blob")]
    pub salt: Vec<u8>,
    /// The hash.
    #[serde(with = "blob")]
    pub hash: Vec<u8>,
    /// Memory that it takes, KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
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
    /// The key: the login, and that of the personal tenant.
    pub login: TenantId,
    /// Shown name.
    pub name: String,
    /// Mail address; may be empty.
    pub email: String,
    /// Of the password.
    pub password: PasswordHash,
    /// When it came to exist.
    pub created_at: Timestamp,
    /// When the password was last set.
    pub password_set_at: Timestamp,
    /// When somebody last logged in.
    #[serde(default)]
    pub logged_in_at: Option<Timestamp>,
}
