//! JSON Web Tokens, ES256 only (RFC 7515, RFC 7519).
//!
//! The algorithm is fixed, never taken from the token's header, so `none` and key confusion
//! cannot happen. A token proves its id and user; roles are in the store.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use super::claims::{Claims, TokenKind};
use super::known::{self, VerifiedTokens};

/// Longest token accepted, bytes; a longer one is malformed.
const TOKEN_BYTES_MAX: usize = 4096;
/// Tolerated clock skew between two control nodes, seconds.
const CLOCK_SKEW_S: u64 = 30;

/// The reason why a token is refused. The caller learns only that it is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not three parts of base64url, not JSON, or far too long.
    #[error("the token cannot be read")]
    Malformed,
    /// Another algorithm than ES256.
    #[error("the token is not signed with ES256")]
    Algorithm,
    /// Not signed by this cluster.
    #[error("the token's signature does not fit")]
    Signature,
    /// Issued by or for another server.
    #[error("the token belongs to another server")]
    Audience,
    /// `nbf` or `iat` is in the future.
    #[error("the token is not valid yet")]
    Early,
    /// `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// The key of the cluster is not usable.
    #[error("the signing key cannot be used")]
    Key,
}

#[derive(Serialize, Deserialize)]
struct JoseHeader<'a> {
    alg: &'a str,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typ: Option<&'a str>,
}

/// Signs and checks tokens with the cluster's key.
pub struct Issuer {
    name: String,
    key: EcdsaKeyPair,
    random: SystemRandom,
    known: VerifiedTokens,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Issuer")
            .field("name", &self.name)
            .field("key", &"<redacted>")
            .finish()
    }
}

impl Issuer {
    /// A fresh signing key, PKCS#8.
    ///
    /// # Errors
    /// [`TokenError::Key`] when the system has no randomness.
    pub fn generate_key() -> Result<Vec<u8>, TokenError> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map(|document| document.as_ref().to_vec())
            .map_err(|_| TokenError::Key)
    }

    /// Uses a key made by [`Issuer::generate_key`]. `name` goes into `iss` and `aud`.
    ///
    /// # Errors
    /// [`TokenError::Key`] when the key cannot be read.
    pub fn new(name: impl Into<String>, pkcs8: &[u8]) -> Result<Self, TokenError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random)
            .map_err(|_| TokenError::Key)?;
        Ok(Self {
            name: name.into(),
            key,
            random,
            known: VerifiedTokens::default(),
        })
    }

    /// The public half, an uncompressed point.
    pub fn public_key(&self) -> &[u8] {
        self.key.public_key().as_ref()
    }

    /// Signs a token of the user for the time given, in seconds since 1970.
    ///
    /// # Errors
    /// [`TokenError::Key`] when signing fails.
    pub fn sign(
        &self,
        kind: TokenKind,
        user: &str,
        id: &str,
        issued_s: u64,
        expires_s: u64,
    ) -> Result<String, TokenError> {
        let claims = Claims {
            iss: self.name.clone(),
            aud: vec![self.name.clone()],
            sub: user.to_owned(),
            jti: id.to_owned(),
            iat: issued_s,
            nbf: issued_s,
            exp: expires_s,
            kind,
        };
        let header = JoseHeader {
            alg: "ES256",
            typ: Some("JWT"),
        };
        let mut text = encode(&header)?;
        text.push('.');
        text.push_str(&encode(&claims)?);
        let signature = self
            .key
            .sign(&self.random, text.as_bytes())
            .map_err(|_| TokenError::Key)?;
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.as_ref(), &mut text);
        Ok(text)
    }

    /// Checks a token's form, signature, audience and times.
    ///
    /// # Errors
    /// Each variant of [`TokenError`] but `Key`.
    pub fn verify(&self, token: &str, now_s: u64) -> Result<Claims, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Malformed);
        }
        let key = known::key(token);
        if let Some(claims) = self.known.get(&key) {
            return self.check(claims, now_s);
        }
        let claims = self.read(token)?;
        self.known.put(key, &claims);
        self.check(claims, now_s)
    }

    /// The claims of a token that this cluster signed.
    fn read(&self, token: &str) -> Result<Claims, TokenError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let header = decode(header)?;
        let header: JoseHeader<'_> =
            serde_json::from_slice(&header).map_err(|_| TokenError::Malformed)?;
        // The header never chooses the algorithm: `none`, and HS256 with the public key as its
        // secret, end here.
        if header.alg != "ES256" {
            return Err(TokenError::Algorithm);
        }
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref())
            .verify(signed.as_bytes(), &decode(signature)?)
            .map_err(|_| TokenError::Signature)?;
        serde_json::from_slice(&decode(claims)?).map_err(|_| TokenError::Malformed)
    }

    fn check(&self, claims: Claims, now_s: u64) -> Result<Claims, TokenError> {
        if claims.iss != self.name || !claims.aud.contains(&self.name) {
            return Err(TokenError::Audience);
        }
        if claims.nbf > now_s + CLOCK_SKEW_S || claims.iat > now_s + CLOCK_SKEW_S {
            return Err(TokenError::Early);
        }
        if claims.exp <= now_s {
            return Err(TokenError::Expired);
        }
        Ok(claims)
    }
}

fn encode(value: &impl Serialize) -> Result<String, TokenError> {
    let json = serde_json::to_vec(value).map_err(|_| TokenError::Key)?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(name: &str) -> Issuer {
        Issuer::new(name, &Issuer::generate_key().unwrap()).unwrap()
    }

    #[test]
    fn round_trip() {
        let issuer = issuer("https://mesh");
        let token = issuer
            .sign(TokenKind::Api, "anna", "id-1", 1000, 2000)
            .unwrap();
        let claims = issuer.verify(&token, 1500).unwrap();
        assert_eq!((claims.sub.as_str(), claims.jti.as_str()), ("anna", "id-1"));
        assert_eq!(claims.kind, TokenKind::Api);
    }

    #[test]
    fn bad_tokens() {
        let ours = issuer("https://mesh");
        let good = ours
            .sign(TokenKind::Api, "anna", "id-1", 1000, 2000)
            .unwrap();
        let foreign = issuer("https://mesh")
            .sign(TokenKind::Api, "a", "b", 1000, 2000)
            .unwrap();
        let parts: Vec<&str> = good.split('.').collect();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let hs = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let other = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
        let cases = [
            (String::new(), 1500, TokenError::Malformed),
            ("abc".into(), 1500, TokenError::Malformed),
            ("a.b.c".into(), 1500, TokenError::Malformed),
            ("x".repeat(TOKEN_BYTES_MAX + 1), 1500, TokenError::Malformed),
            (format!("{none}.{}.", parts[1]), 1500, TokenError::Algorithm),
            (
                format!("{hs}.{}.{}", parts[1], parts[2]),
                1500,
                TokenError::Algorithm,
            ),
            (
                format!("{other}.{}.{}", parts[1], parts[2]),
                1500,
                TokenError::Signature,
            ),
            (foreign, 1500, TokenError::Signature),
            (good.clone(), 2000, TokenError::Expired),
            (good, 900, TokenError::Early),
        ];
        for (token, now_s, expected) in cases {
            for _ in 0..2 {
                assert_eq!(ours.verify(&token, now_s), Err(expected), "{token}");
            }
        }
        // Only tokens with a valid signature are cached, expired or not.
        assert_eq!(ours.known.len(), 1);
    }

    #[test]
    fn a_known_token_ends_like_any_other() {
        let issuer = issuer("https://mesh");
        let token = issuer.sign(TokenKind::Api, "anna", "id-1", 1000, 2000);
        let token = token.unwrap();
        let first = issuer.verify(&token, 1500).unwrap();
        assert_eq!(issuer.verify(&token, 1999), Ok(first));
        assert_eq!(issuer.verify(&token, 2000), Err(TokenError::Expired));
        let mut other = token;
        other.push('A');
        assert!(issuer.verify(&other, 1500).is_err());
    }

    #[test]
    fn another_servers_name() {
        let key = Issuer::generate_key().unwrap();
        let token = Issuer::new("a", &key).unwrap();
        let token = token.sign(TokenKind::User, "u", "i", 1000, 2000).unwrap();
        let verdict = Issuer::new("b", &key).unwrap().verify(&token, 1500);
        assert_eq!(verdict, Err(TokenError::Audience));
    }

    /// Only the cluster's key signs, so no input from outside verifies.
    #[test]
    fn fuzz_token() {
        let issuer = Issuer::new("https://mesh.example", &Issuer::generate_key().unwrap()).unwrap();
        bolero::check!()
            .with_type::<[Vec<u8>; 3]>()
            .for_each(|parts| {
                let token = parts.each_ref().map(|part| URL_SAFE_NO_PAD.encode(part));
                assert!(issuer.verify(&token.join("."), 0).is_err());
                let token = String::from_utf8_lossy(&parts[0]);
                assert!(issuer.verify(&token, 0).is_err());
            });
    }
}
