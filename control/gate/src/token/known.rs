//! Tokens whose signature was found good: a program shows the same one with every call, and to
//! check a signature costs more than most calls do.
//!
//! What is kept is the digest of the token's whole text and what the signed part says. Times are
//! checked with every call, and so is the record in the state, so that a revoked token is refused
//! at once. A token that does not fit is never kept: it costs what it always did.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use super::Claims;

/// Tokens that are kept; when there are more, all are checked anew.
const KNOWN_MAX: usize = 8192;

type Key = [u8; SHA256_OUTPUT_LEN];

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<HashMap<Key, Claims>>);

/// The digest of a token's text.
pub(super) fn key(token: &str) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    key
}

impl Known {
    /// What a token says whose signature was good before.
    pub(super) fn get(&self, key: &Key) -> Option<Claims> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(key).cloned()
    }

    /// Keeps what a token with a good signature says.
    pub(super) fn put(&self, key: Key, claims: &Claims) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, claims.clone());
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.read().unwrap().len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::TokenKind;
    use super::*;

    #[test]
    fn it_stays_within_bounds() {
        let known = Known::default();
        let claims = Claims {
            iss: String::new(),
            aud: Vec::new(),
            sub: "anna".into(),
            jti: String::new(),
            iat: 0,
            nbf: 0,
            exp: 0,
            kind: TokenKind::Api,
        };
        for number in 0..KNOWN_MAX + 1 {
            known.put(key(&number.to_string()), &claims);
        }
        assert_eq!(known.len(), 1);
        assert_eq!(known.get(&key(&KNOWN_MAX.to_string())), Some(claims));
        assert_eq!(known.get(&key("another")), None);
    }
}
