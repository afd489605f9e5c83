//! Verification of a server's certificate by its SPIFFE id. DNS names are not used.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::tls::provider;

/// The certificates that a caller accepts. The handshake proves that the other side has the
/// certificate's key, independent of the rule.
pub trait CertificateRule: fmt::Debug + Send + Sync {
    /// Judges the certificate and what was sent with it.
    ///
    /// # Errors
    /// The certificate is not acceptable at `now`.
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error>;
}

/// The one verifier of servers' certificates: a rule, and *ring* for the signatures.
#[derive(Debug)]
pub struct RuleVerifier<R> {
    rule: R,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<R: CertificateRule> RuleVerifier<R> {
    /// A verifier that accepts what `rule` accepts.
    pub fn new(rule: R) -> Arc<Self> {
        Arc::new(Self {
            rule,
            algorithms: algorithms(),
        })
    }
}

impl<R: CertificateRule> ServerCertVerifier for RuleVerifier<R> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.rule.check(end_entity, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Signatures as *ring* verifies them.
pub(crate) fn algorithms() -> WebPkiSupportedAlgorithms {
    provider().signature_verification_algorithms
}
