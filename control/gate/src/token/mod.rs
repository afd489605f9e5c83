//! Signs and verifies bearer tokens. The state decides whether a token is still valid, and its
//! rights.

mod claims;
mod jwt;
mod keys;
mod known;

pub use claims::{Claims, TokenKind};
pub use jwt::{Issuer, TokenError};
pub use keys::{KeyError, issuer};
