//! Signs and verifies bearer tokens. The state decides whether a token is still valid, and its
//! rights.

mod jwt;
mod keys;
mod known;

pub use jwt::{Claims, Issuer, TokenError, TokenKind};
pub use keys::{KeyError, issuer};
