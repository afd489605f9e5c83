//! Private keys and their certificates.

use std::fmt;

use rcgen::{KeyPair, PublicKeyData};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::request;
use crate::{IdentityError, PeerIdentity, sha256_hex};

/// An ECDSA P-256 private key. It is generated where it is used, and leaves the process only for the
/// state directory.
pub struct Key {
    pair: KeyPair,
}

impl Key {
    /// Generates a key.
    pub fn generate() -> Result<Self, IdentityError> {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)
            .map_err(|e| IdentityError::Issue(e.to_string()))?;
        Ok(Self { pair })
    }

    /// Reads PKCS#8 DER.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, IdentityError> {
        let der = PrivatePkcs8KeyDer::from(der.to_vec());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &rcgen::PKCS_ECDSA_P256_SHA256)
            .map_err(|_| IdentityError::Key)?;
        Ok(Self { pair })
    }

    /// Reads a PEM file's `PRIVATE KEY` block.
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        let pair = KeyPair::from_pkcs8_pem_and_sign_algo(pem, &rcgen::PKCS_ECDSA_P256_SHA256)
            .map_err(|_| IdentityError::Key)?;
        Ok(Self { pair })
    }

    /// PKCS#8 DER. Secret.
    pub fn to_pkcs8(&self) -> Vec<u8> {
        self.pair.serialize_der()
    }

    /// PKCS#8 PEM. Secret.
    pub fn to_pem(&self) -> String {
        self.pair.serialize_pem()
    }

    /// SHA-256 of the public key (SubjectPublicKeyInfo, DER), hex. Tickets are bound to it.
    pub fn fingerprint(&self) -> String {
        sha256_hex(&self.pair.subject_public_key_info())
    }

    /// A certificate request (PKCS#10, DER) that proves possession of the key. It requests no names
    /// or usages: the issuer decides on both.
    pub fn request(&self) -> Result<Vec<u8>, IdentityError> {
        request::make(&self.pair)
    }

    pub(crate) fn pair(&self) -> &KeyPair {
        &self.pair
    }

    pub(crate) fn to_rustls(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pair.serialize_der()))
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        match Self::from_pkcs8(&self.to_pkcs8()) {
            Ok(key) => key,
            Err(_) => unreachable!("a key reads back its own encoding"),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(<redacted>, {})", self.fingerprint())
    }
}

/// A key, its certificate chain (leaf first, no root), and the roots to trust for the other side.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The private key.
    pub key: Key,
    /// Leaf first, without the root.
    pub chain: Vec<CertificateDer<'static>>,
    /// Roots that a control node's chain must end in.
    pub roots: Vec<CertificateDer<'static>>,
}

impl Credential {
    /// The identity in the certificate.
    ///
    /// # Errors
    /// [`IdentityError::Certificate`] if the chain is empty, the leaf is not valid, or it is of another
    /// key.
    pub fn identity(&self) -> Result<PeerIdentity, IdentityError> {
        let leaf = self
            .chain
            .first()
            .ok_or(IdentityError::Certificate("empty chain"))?;
        let identity = PeerIdentity::from_certificate(leaf)?;
        if identity.fingerprint != self.key.fingerprint() {
            return Err(IdentityError::Certificate("certificate is of another key"));
        }
        Ok(identity)
    }
}
