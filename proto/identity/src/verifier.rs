//! What an agent checks of a control node: its chain ends in a pinned root, its certificate may
//! serve and names a node. DNS names play no part.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::{CallerKind, IdentityError, PeerIdentity, sha256_hex};

/// Which roots to trust for control nodes.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The roots themselves, known since joining.
    Certificates(Vec<CertificateDer<'static>>),
    /// SHA-256 of the roots' DER, hex, as a join ticket has them: nodes send their root too.
    Sha256(Vec<String>),
}

#[derive(Debug)]
pub(crate) struct NodeVerifier {
    roots: Roots,
    provider: Arc<CryptoProvider>,
}

impl NodeVerifier {
    pub(crate) fn new(
        roots: Roots,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<Self>, IdentityError> {
        let empty = match &roots {
            Roots::Certificates(list) => list.is_empty(),
            Roots::Sha256(list) => list.is_empty(),
        };
        if empty {
            return Err(IdentityError::Tls("no root to trust".to_owned()));
        }
        Ok(Arc::new(Self { roots, provider }))
    }

    fn anchors(&self, sent: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        let mut store = RootCertStore::empty();
        match &self.roots {
            Roots::Certificates(list) => {
                for root in list {
                    store.add(root.clone())?;
                }
            }
            Roots::Sha256(hashes) => {
                for cert in sent {
                    let hash = sha256_hex(cert);
                    if hashes
                        .iter()
                        .any(|pinned| pinned.eq_ignore_ascii_case(&hash))
                    {
                        store.add(cert.clone().into_owned())?;
                    }
                }
            }
        }
        if store.is_empty() {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        Ok(store)
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let anchors = self.anchors(intermediates)?;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &anchors,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        let peer = PeerIdentity::from_certificate(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if peer.id.caller_kind() != CallerKind::Node {
            return Err(Error::InvalidCertificate(CertificateError::NotValidForName));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
