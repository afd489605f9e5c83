//! Certificate requests: made by agents, checked by control.

use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, KeyPair, PublicKeyData,
};
use rustls_pki_types::CertificateSigningRequestDer;

use crate::{IdentityError, sha256_hex};

/// Largest certificate request, bytes. A larger one is refused; a P-256 request has about 250.
pub const REQUEST_LEN_MAX: usize = 4096;

/// A certificate request with a valid signature. Only the key is used, not its names.
pub struct CertificateRequest {
    pub(crate) key: rcgen::PublicKey,
    fingerprint: String,
}

impl std::fmt::Debug for CertificateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateRequest")
            .field("fingerprint", &self.fingerprint)
            .finish()
    }
}

impl CertificateRequest {
    /// Parses PKCS#10 DER and verifies that the sender holds the key (ECDSA P-256 or Ed25519).
    pub fn verify(der: &[u8]) -> Result<Self, IdentityError> {
        if der.len() > REQUEST_LEN_MAX {
            return Err(IdentityError::Request("too long"));
        }
        let request =
            CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der))
                .map_err(|_| IdentityError::Request("malformed or wrongly signed"))?;
        let algorithm = request.public_key.algorithm();
        if *algorithm != rcgen::PKCS_ECDSA_P256_SHA256 && *algorithm != rcgen::PKCS_ED25519 {
            return Err(IdentityError::Request(
                "key is neither ECDSA P-256 nor Ed25519",
            ));
        }
        let fingerprint = sha256_hex(&request.public_key.subject_public_key_info());
        Ok(Self {
            key: request.public_key,
            fingerprint,
        })
    }

    /// SHA-256 of the public key (SubjectPublicKeyInfo, DER), hex.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

pub(crate) fn make(pair: &KeyPair) -> Result<Vec<u8>, IdentityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params
        .serialize_request(pair)
        .map_err(|e| IdentityError::Issue(e.to_string()))?;
    Ok(request.der().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn a_request_proves_its_key() {
        let key = Key::generate().unwrap();
        let der = key.request().unwrap();
        assert_eq!(
            CertificateRequest::verify(&der).unwrap().fingerprint(),
            key.fingerprint()
        );
    }

    #[test]
    fn a_changed_request_is_refused() {
        let key = Key::generate().unwrap();
        let der = key.request().unwrap();
        for i in 0..der.len() {
            let mut bad = der.clone();
            bad[i] ^= 0x01;
            // The encoding has a few bits without meaning; the key never changes.
            if let Ok(request) = CertificateRequest::verify(&bad) {
                assert_eq!(request.fingerprint(), key.fingerprint(), "byte {i}");
            }
        }
        assert!(CertificateRequest::verify(&der[..der.len() - 1]).is_err());
        assert!(CertificateRequest::verify(&vec![0x30; REQUEST_LEN_MAX + 1]).is_err());
    }
}
