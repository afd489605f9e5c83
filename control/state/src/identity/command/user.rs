//! Commands about built-in users and logins.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::identity::entity::PasswordHash;

/// See [`Op::CreateUser`](crate::Op::CreateUser).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateUser {
    /// Login of the user, and of its personal tenant.
    pub login: TenantId,
    /// Display name.
    pub name: String,
    /// Mail address. Empty means unknown.
    pub email: String,
    /// Hash of the password.
    pub password: PasswordHash,
}

/// See [`Op::SetPassword`](crate::Op::SetPassword).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPassword {
    /// Login of the user.
    pub login: TenantId,
    /// Hash of the new password.
    pub password: PasswordHash,
}

/// See [`Op::DeleteUser`](crate::Op::DeleteUser).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteUser {
    /// Login of the user.
    pub login: TenantId,
}
