//! Public keys of a provider (RFC 7517), and the algorithms that are accepted.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// A public key of the provider.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JsonWebKey {
    pub(super) kty: String,
    pub(super) kid: Option<String>,
    #[serde(rename = "use")]
    pub(super) usage: Option<String>,
    pub(super) alg: Option<String>,
    pub(super) crv: Option<String>,
    pub(super) n: Option<String>,
    pub(super) e: Option<String>,
    pub(super) x: Option<String>,
    pub(super) y: Option<String>,
}

/// The reason why a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsigned {
    #[error("the id token cannot be read")]
    Malformed,
    #[error("the id token is signed in a way that is not accepted")]
    Algorithm,
    /// The provider may have newer keys.
    #[error("the id token is signed by a key that the provider does not publish")]
    UnknownKey,
    #[error("the id token's signature does not fit")]
    Signature,
}

impl JsonWebKey {
    /// Verifies a signature by this key.
    ///
    /// # Errors
    /// `Algorithm` for an algorithm that does not fit the key, `Signature` for a wrong signature.
    pub(super) fn verify(
        &self,
        alg: &str,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Unsigned> {
        let part = |part: &Option<String>| decode(part.as_deref().ok_or(Unsigned::Malformed)?);
        let rsa = |parameters: &'static RsaParameters| {
            let (n, e) = (part(&self.n)?, part(&self.e)?);
            let key = RsaPublicKeyComponents { n: &n, e: &e };
            let verified = key.verify(parameters, message, signature);
            verified.map_err(|_| Unsigned::Signature)
        };
        let ecdsa = |algorithm: &'static EcdsaVerificationAlgorithm, len: usize| {
            let (x, y) = (part(&self.x)?, part(&self.y)?);
            if x.len() != len || y.len() != len {
                return Err(Unsigned::Malformed);
            }
            // The uncompressed form of a point (SEC 1).
            let point = [&[4][..], &x, &y].concat();
            let key = UnparsedPublicKey::new(algorithm, point);
            key.verify(message, signature)
                .map_err(|_| Unsigned::Signature)
        };
        match (alg, self.kty.as_str(), self.crv.as_deref()) {
            ("RS256", "RSA", _) => rsa(&RSA_PKCS1_2048_8192_SHA256),
            ("RS384", "RSA", _) => rsa(&RSA_PKCS1_2048_8192_SHA384),
            ("RS512", "RSA", _) => rsa(&RSA_PKCS1_2048_8192_SHA512),
            ("PS256", "RSA", _) => rsa(&RSA_PSS_2048_8192_SHA256),
            ("PS384", "RSA", _) => rsa(&RSA_PSS_2048_8192_SHA384),
            ("PS512", "RSA", _) => rsa(&RSA_PSS_2048_8192_SHA512),
            ("ES256", "EC", Some("P-256")) => ecdsa(&ECDSA_P256_SHA256_FIXED, 32),
            ("ES384", "EC", Some("P-384")) => ecdsa(&ECDSA_P384_SHA384_FIXED, 48),
            ("EdDSA", "OKP", Some("Ed25519")) => {
                let key = UnparsedPublicKey::new(&ED25519, part(&self.x)?);
                key.verify(message, signature)
                    .map_err(|_| Unsigned::Signature)
            }
            _ => Err(Unsigned::Algorithm),
        }
    }
}

/// Decodes base64url without padding.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, Unsigned> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| Unsigned::Malformed)
}
