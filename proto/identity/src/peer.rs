//! The identity of the other side of a session, from its certificate.

use rustls_pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{IdentityError, SpiffeId, sha256_hex};

/// The identity in a leaf certificate. Reading it does not verify the chain; TLS does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The one URI of the certificate.
    pub id: SpiffeId,
    /// Serial number, lower-case hex.
    pub serial: String,
    /// SHA-256 of the public key, hex.
    pub fingerprint: String,
    /// Start of validity, milliseconds since the epoch.
    pub not_before_ms: u64,
    /// End of validity, milliseconds since the epoch.
    pub not_after_ms: u64,
}

impl PeerIdentity {
    /// Reads the identity from the leaf of a chain.
    pub fn from_certificate(leaf: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        let (rest, cert) =
            X509Certificate::from_der(leaf).map_err(|_| IdentityError::Certificate("malformed"))?;
        if !rest.is_empty() {
            return Err(IdentityError::Certificate("trailing bytes"));
        }
        let san = cert
            .subject_alternative_name()
            .map_err(|_| IdentityError::Certificate("malformed subject alternative name"))?
            .ok_or(IdentityError::Certificate("no subject alternative name"))?;
        // Exactly one name: two would leave open which of them counts.
        let [GeneralName::URI(uri)] = san.value.general_names.as_slice() else {
            return Err(IdentityError::Certificate("not exactly one URI"));
        };
        Ok(Self {
            id: uri.parse()?,
            serial: hex::encode(cert.raw_serial()),
            fingerprint: sha256_hex(cert.public_key().raw),
            not_before_ms: to_ms(cert.validity().not_before.timestamp()),
            not_after_ms: to_ms(cert.validity().not_after.timestamp()),
        })
    }
}

fn to_ms(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(1000)
}
