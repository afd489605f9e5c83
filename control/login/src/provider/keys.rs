//! Verifies tokens by the provider's keys (RFC 7515).

use serde::Deserialize;

use super::json_web_key::{JsonWebKey, Unsigned, decode};

/// Most keys of a provider that are tried. Further keys are ignored.
const KEYS_MAX: usize = 64;
/// Largest token, bytes. A longer one is refused before it is decoded.
const TOKEN_BYTES_MAX: usize = 32 << 10;

/// Keys of a provider.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Keys {
    keys: Vec<JsonWebKey>,
}

/// The protected header of an id token.
#[derive(Deserialize)]
struct IdTokenHeader {
    alg: String,
    kid: Option<String>,
    #[serde(default)]
    crit: Vec<String>,
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
            serde_json::from_slice(&decode(header)?).map_err(|_| Unsigned::Malformed)?;
        // RFC 7515: a recipient must refuse extensions that it does not know, and this one knows none.
        if !header.crit.is_empty() {
            return Err(Unsigned::Algorithm);
        }
        let (payload, signature) = (decode(payload)?, decode(signature)?);
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

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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
