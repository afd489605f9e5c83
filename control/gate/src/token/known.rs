//! Cache of tokens with a verified signature: a program sends the same token with every call, and
//! verifying a signature costs more than most calls do.
//!
//! The key is the digest of the token's whole text, the value its claims. Expiry and the token's
//! record in the state are checked with every call, so that a revoked token is refused at once. A
//! token with a bad signature is never cached, so guesses cannot fill the cache.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use super::Claims;

/// Most cached tokens. When there are more the cache is cleared, and each is verified once again.
const KNOWN_MAX: usize = 8192;

type TokenDigest = [u8; SHA256_OUTPUT_LEN];

/// Claims of tokens with a verified signature, by digest.
#[derive(Debug, Default)]
pub(super) struct VerifiedTokens(RwLock<HashMap<TokenDigest, Claims>>);

/// The digest of a token's text.
pub(super) fn key(token: &str) -> TokenDigest {
    let mut key = TokenDigest::default();
    key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    key
}

impl VerifiedTokens {
    /// The claims of a token that was verified before.
    pub(super) fn get(&self, key: &TokenDigest) -> Option<Claims> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(key).cloned()
    }

    /// Caches the claims of a verified token.
    pub(super) fn put(&self, key: TokenDigest, claims: &Claims) {
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
        let known = VerifiedTokens::default();
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
