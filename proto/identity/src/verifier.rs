//! Verification of a server's certificate by its SPIFFE id. DNS names are not used.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::tls::provider;
use crate::{CallerKind, IdentityError, PeerIdentity, SpiffeId, Subject, sha256_hex};

/// Which certificates a caller accepts. That the other side has the certificate's key is proved by
/// the handshake, whatever the rule.
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

/// Which roots to trust for control nodes.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The roots themselves, known since joining.
    Certificates(Vec<CertificateDer<'static>>),
    /// SHA-256 of the roots' DER, hex, as a join ticket has them: nodes send their root too.
    Sha256(Vec<String>),
}

impl Roots {
    fn anchors(&self, sent: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        match self {
            Self::Certificates(list) => anchors(list),
            Self::Sha256(hashes) => {
                let is_pinned = |cert: &&CertificateDer<'_>| {
                    let hash = sha256_hex(cert);
                    hashes.iter().any(|pin| pin.eq_ignore_ascii_case(&hash))
                };
                anchors(sent.iter().filter(is_pinned))
            }
        }
    }
}

/// The expected server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// A control node, whichever.
    Node,
    /// The control node of this number, to another one.
    Peer(u64),
}

impl Expected {
    fn is(self, id: &SpiffeId) -> bool {
        match self {
            Self::Node => id.caller_kind() == CallerKind::Node,
            Self::Peer(number) => {
                matches!(id.subject(), Subject::Peer { node } if *node == number)
            }
        }
    }
}

/// The chain ends in a pinned root, and the certificate may serve and names who is expected.
#[derive(Debug)]
pub(crate) struct Member {
    roots: Roots,
    expected: Expected,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Member {
    pub(crate) fn new(roots: Roots, expected: Expected) -> Result<Self, IdentityError> {
        let is_empty = match &roots {
            Roots::Certificates(list) => list.is_empty(),
            Roots::Sha256(list) => list.is_empty(),
        };
        if is_empty {
            return Err(IdentityError::Tls("no root to trust".to_owned()));
        }
        Ok(Self {
            roots,
            expected,
            algorithms: algorithms(),
        })
    }
}

impl CertificateRule for Member {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let anchors = self.roots.anchors(sent)?;
        if anchors.is_empty() {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &anchors,
            sent,
            now,
            self.algorithms.all,
        )?;
        let peer = PeerIdentity::from_certificate(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if self.expected.is(&peer.id) {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::NotValidForName))
        }
    }
}

/// Signatures as *ring* verifies them.
fn algorithms() -> WebPkiSupportedAlgorithms {
    provider().signature_verification_algorithms
}

/// A store of trust anchors.
pub(crate) fn anchors<'a>(
    certificates: impl IntoIterator<Item = &'a CertificateDer<'a>>,
) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate.clone().into_owned())?;
    }
    Ok(store)
}
