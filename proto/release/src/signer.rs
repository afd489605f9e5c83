use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::head::{SIGNATURE_BYTES, signed_bytes};
use crate::{ReleaseError, ReleaseKey, ReleaseManifest, SignedHead};

/// First part of the line of a secret key.
const PREFIX: &str = "metalmesh-release-secret-key:";

/// A key that signs releases.
pub struct ReleaseSigner {
    pair: Ed25519KeyPair,
    public: ReleaseKey,
    /// The pair as PKCS#8, to be kept.
    document: Vec<u8>,
}

impl fmt::Debug for ReleaseSigner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the secret half.
        out.debug_struct("ReleaseSigner")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl ReleaseSigner {
    /// A new key.
    ///
    /// # Errors
    /// [`ReleaseError::Random`].
    pub fn generate() -> Result<Self, ReleaseError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| ReleaseError::Random)?;
        Self::of_document(document.as_ref().to_vec())
    }

    /// The key of a file's text.
    ///
    /// # Errors
    /// [`ReleaseError::SecretText`].
    pub fn parse(text: &str) -> Result<Self, ReleaseError> {
        let mut lines = text.lines().map(str::trim);
        let document = lines
            .find_map(|line| line.strip_prefix(PREFIX))
            .and_then(|text| STANDARD.decode(text).ok());
        Self::of_document(document.ok_or(ReleaseError::SecretText)?)
    }

    fn of_document(document: Vec<u8>) -> Result<Self, ReleaseError> {
        let pair = Ed25519KeyPair::from_pkcs8(&document).map_err(|_| ReleaseError::SecretText)?;
        let public = ReleaseKey::of_bytes(pair.public_key().as_ref());
        Ok(Self {
            public: public.ok_or(ReleaseError::SecretText)?,
            pair,
            document,
        })
    }

    /// The text of a file that keeps the key. It is secret.
    #[must_use]
    pub fn secret_text(&self) -> String {
        format!(
            "# A key that signs releases of metalmesh. Keep it secret.\n# Public key: {}\n{PREFIX}{}\n",
            self.public,
            STANDARD.encode(&self.document)
        )
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> ReleaseKey {
        self.public
    }

    /// Signs a manifest.
    ///
    /// # Errors
    /// [`ReleaseError::Format`]: a field of the manifest is wrong.
    pub fn sign(&self, manifest: &ReleaseManifest) -> Result<SignedHead, ReleaseError> {
        let bytes = manifest.encode()?;
        let made = self.pair.sign(&signed_bytes(&bytes));
        let signature: [u8; SIGNATURE_BYTES] = made
            .as_ref()
            .try_into()
            .map_err(|_| ReleaseError::Format("the signature's length".to_owned()))?;
        Ok(SignedHead::new(bytes, self.public.id(), signature))
    }
}
