//! Bearer tokens: what the signed text says and how it is made. Whether a token still counts,
//! and for what, is the store's to say.

mod jwt;
mod keys;
mod known;

pub use jwt::{Claims, Issuer, TokenError, TokenKind};
pub use keys::{KeyError, issuer};
