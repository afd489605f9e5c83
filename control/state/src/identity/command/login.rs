//! The command of a login.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::identity::command::CreateToken;

/// See [`Op::LogIn`](crate::Op::LogIn).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogIn {
    /// Login of the user.
    pub login: TenantId,
    /// Display name of the personal tenant, if the login creates it.
    pub name: String,
    /// Mail address of the personal tenant, if the login creates it.
    pub email: String,
    /// URL of the user's picture. Empty keeps the one on record.
    pub avatar_url: String,
    /// The token of the login: of the type `User`, and with its login.
    pub token: CreateToken,
}
