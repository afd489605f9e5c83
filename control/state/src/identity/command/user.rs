//! Commands about built-in users and logins.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::identity::entity::PasswordHash;

/// See [`Op::CreateUser`](crate::Op::CreateUser).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateUser {
    /// The login.
    pub login: TenantId,
    /// Shown name.
    pub name: String,
    /// Mail address; may be empty.
    pub email: String,
    /// Of the password.
    pub password: PasswordHash,
}

/// See [`Op::SetPassword`](crate::Op::SetPassword).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetPassword {
    /// Whose.
    pub login: TenantId,
    /// Of the new password.
    pub password: PasswordHash,
}

/// See [`Op::DeleteUser`](crate::Op::DeleteUser).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteUser {
    /// Login of the user.
    pub login: TenantId,
}
