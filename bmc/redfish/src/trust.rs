//! Trust in the certificate of a BMC.

use std::fmt;
use std::sync::Arc;

use proto_identity::{CertificateRule, RuleVerifier, sha256, tls};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};

/// The way in which a BMC proves its identity.
#[derive(Clone)]
pub enum Trust {
    /// SHA-256 of its certificate (DER). Names and dates are not checked: BMCs are shipped with
    /// self-signed certificates, and their clocks are wrong.
    Pin([u8; 32]),
    /// The operator's CAs. The certificate must name the address.
    Roots(Vec<CertificateDer<'static>>),
    /// No TLS: the password is sent in the clear. For labs only.
    PlainHttp,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(pin) => write!(f, "Pin({})", hex::encode(pin)),
            Self::Roots(roots) => write!(f, "Roots({})", roots.len()),
            Self::PlainHttp => f.write_str("PlainHttp"),
        }
    }
}

impl Trust {
    /// The rustls configuration. `None` means plain HTTP.
    pub(crate) fn client_config(&self) -> Result<Option<Arc<ClientConfig>>, Error> {
        let builder = ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()?;
        let config = match self {
            Self::PlainHttp => return Ok(None),
            Self::Pin(pin) => builder
                .dangerous()
                .with_custom_certificate_verifier(RuleVerifier::new(Pinned(*pin))),
            Self::Roots(roots) => {
                let mut store = RootCertStore::empty();
                for root in roots {
                    store.add(root.clone())?;
                }
                builder.with_root_certificates(store)
            }
        };
        Ok(Some(Arc::new(config.with_no_client_auth())))
    }
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct Pinned([u8; 32]);

impl CertificateRule for Pinned {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        _sent: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<(), Error> {
        if sha256(end_entity) == self.0 {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            ))
        }
    }
}
