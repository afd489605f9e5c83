//! The command of a login.

use proto_types::TenantId;
use serde::{Deserialize, Serialize};

use crate::identity::command::CreateToken;

/// See [`Op::LogIn`](crate::Op::LogIn).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogIn {
    /// Login of the user.
    pub login: TenantId,
    /// Shown name of a new tenant.
    pub name: String,
    /// Mail address of a new tenant.
    pub email: String,
    /// Where a picture is; an empty one changes nothing.
    pub avatar_url: String,
    /// The token of the login.
    pub token: CreateToken,
}
