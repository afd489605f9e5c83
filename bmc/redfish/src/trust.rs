//! How a BMC proves that it is itself.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};

/// How a BMC proves that it is itself.
#[derive(Clone)]
pub enum Trust {
    /// The SHA-256 of its certificate (DER). Names and dates do not matter then: BMCs come with
    /// self-signed certificates, and their clocks are wrong.
    Pin([u8; 32]),
    /// A CA of the operator's. The certificate must name the address.
    Roots(Vec<CertificateDer<'static>>),
    /// Nothing: no TLS at all, the password goes in the clear. For lab use only.
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
    /// The rustls configuration; none for plain HTTP.
    pub(crate) fn client_config(&self) -> Result<Option<Arc<ClientConfig>>, Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let config = match self {
            Self::PlainHttp => return Ok(None),
            Self::Pin(pin) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Pinned {
                    pin: *pin,
                    provider,
                })),
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

/// Accepts exactly one certificate. The handshake still proves that the other side has its key.
#[derive(Debug)]
struct Pinned {
    pin: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let got: [u8; 32] = Sha256::digest(end_entity).into();
        if got == self.pin {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            ))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
