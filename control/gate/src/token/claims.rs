//! The claims of a token.

use serde::{Deserialize, Serialize};

/// `type` of the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenKind {
    /// Made through the token service.
    #[serde(rename = "TOKEN_TYPE_API")]
    Api,
    /// Made by a login.
    #[serde(rename = "TOKEN_TYPE_USER")]
    User,
}

/// Claims of a token. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The server's name.
    pub iss: String,
    /// The same.
    pub aud: Vec<String>,
    /// The user.
    pub sub: String,
    /// The token's id in the store.
    pub jti: String,
    /// Issued at.
    pub iat: u64,
    /// Not before.
    pub nbf: u64,
    /// Not after.
    pub exp: u64,
    /// Kind of token.
    #[serde(rename = "type")]
    pub kind: TokenKind,
}
