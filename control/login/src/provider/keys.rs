//! The provider's keys, and what they signed (RFC 7515, RFC 7517).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// Most keys that are looked at.
const KEYS_MAX: usize = 64;
/// Longest token that is looked at, bytes.
const TOKEN_BYTES_MAX: usize = 32 << 10;

/// Keys of a provider.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Keys {
    keys: Vec<JsonWebKey>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct IdTokenHeader {
    alg: String,
    kid: Option<String>,
    #[serde(default)]
    crit: Vec<String>,
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

impl Keys {
    /// The payload of a token with a valid signature. HMAC and `none` are refused.
    pub(super) fn payload(&self, token: &str) -> Result<Vec<u8>, Unsigned> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Unsigned::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Unsigned::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(Unsigned::Malformed)?;
        let header: IdTokenHeader =
            serde_json::from_slice(&bytes(header)?).map_err(|_| Unsigned::Malformed)?;
        if !header.crit.is_empty() {
            return Err(Unsigned::Algorithm);
        }
        let (payload, signature) = (bytes(payload)?, bytes(signature)?);
        let mut refusal = Unsigned::UnknownKey;
        for key in self.keys.iter().take(KEYS_MAX) {
            let is_named = header.kid.is_none() || key.kid == header.kid;
            let is_for_it = key.alg.as_ref().is_none_or(|alg| *alg == header.alg)
                && key.usage.as_deref().is_none_or(|usage| usage == "sig");
            if !is_named || !is_for_it {
                continue;
            }
            match key.verify(&header.alg, message.as_bytes(), &signature) {
                Ok(()) => return Ok(payload),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }
}

impl JsonWebKey {
    fn verify(&self, alg: &str, message: &[u8], signature: &[u8]) -> Result<(), Unsigned> {
        let part = |part: &Option<String>| bytes(part.as_deref().ok_or(Unsigned::Malformed)?);
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

fn bytes(text: &str) -> Result<Vec<u8>, Unsigned> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| Unsigned::Malformed)
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    use super::*;

    struct Signer(EcdsaKeyPair);

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
        }

        fn keys(&self, kid: &str) -> Keys {
            let point = self.0.public_key().as_ref();
            let text = serde_json::json!({"keys": [{
                "kty": "EC", "crv": "P-256", "kid": kid, "use": "sig",
                "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
                "y": URL_SAFE_NO_PAD.encode(&point[33..]),
            }]});
            serde_json::from_value(text).unwrap()
        }

        fn sign(&self, header: &str, payload: &str) -> String {
            let [header, payload] = [header, payload].map(|it| URL_SAFE_NO_PAD.encode(it));
            let message = format!("{header}.{payload}");
            let signature = self
                .0
                .sign(&SystemRandom::new(), message.as_bytes())
                .unwrap();
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    #[test]
    fn only_what_a_published_key_signed_counts() {
        let signer = Signer::new();
        let keys = signer.keys("a");
        let good = signer.sign(r#"{"alg":"ES256","kid":"a"}"#, "{}");
        assert_eq!(keys.payload(&good).unwrap(), b"{}");
        let no_kid = signer.sign(r#"{"alg":"ES256"}"#, "{}");
        keys.payload(&no_kid).unwrap();
        assert_eq!(
            Signer::new().keys("a").payload(&good),
            Err(Unsigned::Signature)
        );
        assert_eq!(signer.keys("b").payload(&good), Err(Unsigned::UnknownKey));
        assert_eq!(Keys::default().payload(&good), Err(Unsigned::UnknownKey));
        for (header, why) in [
            (r#"{"alg":"none","kid":"a"}"#, Unsigned::Algorithm),
            (r#"{"alg":"HS256","kid":"a"}"#, Unsigned::Algorithm),
            (r#"{"alg":"RS256","kid":"a"}"#, Unsigned::Algorithm),
            (
                r#"{"alg":"ES256","kid":"a","crit":["b64"]}"#,
                Unsigned::Algorithm,
            ),
            (r#"{"kid":"a"}"#, Unsigned::Malformed),
        ] {
            assert_eq!(
                keys.payload(&signer.sign(header, "{}")),
                Err(why),
                "{header}"
            );
        }
        let other = URL_SAFE_NO_PAD.encode(r#"{"admin":1}"#);
        let parts: Vec<_> = good.split('.').collect();
        let forged = format!("{}.{other}.{}", parts[0], parts[2]);
        assert_eq!(keys.payload(&forged), Err(Unsigned::Signature));
        for bad in ["", ".", "..", "a.b", &"x".repeat(TOKEN_BYTES_MAX + 1)] {
            assert_eq!(keys.payload(bad), Err(Unsigned::Malformed), "{bad:.9}");
        }
    }
}
